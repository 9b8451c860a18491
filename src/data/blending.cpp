#include "data/blending.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "data/indexed_dataset.h"

namespace megalith {
namespace {

std::string_view stripped(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<double> parse_number(std::string_view text) {
  text = stripped(text);
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

}  // namespace

Blend parse_blend(std::span<const std::string> values, std::string_view flag) {
  Blend blend;
  std::size_t numbers = 0;
  for (std::size_t i = 0; i < values.size(); i += 2) numbers += parse_number(values[i]) ? 1 : 0;
  const bool even = values.size() % 2 == 0;
  if (even && numbers == values.size() / 2) {
    for (std::size_t i = 0; i < values.size(); i += 2) {
      const double weight = *parse_number(values[i]);
      if (!(weight > 0) || !std::isfinite(weight)) {
        fail(ErrorKind::usage, flag,
             "the weight {} of {} is not positive; every dataset of a blend must be used. Remove it, or give "
             "it a "
             "weight above 0",
             values[i], values[i + 1]);
      }
      blend.weights.push_back(weight);
      blend.prefixes.emplace_back(stripped(values[i + 1]));
    }
    return blend;
  }
  std::error_code code;
  if ((even && numbers > 0) || (!even && values.size() > 1 && numbers == values.size() / 2 + 1) ||
      (!even && values.size() > 1 && numbers > 0 &&
       !std::filesystem::exists(dataset_prefix(values[0]) + ".idx", code))) {
    fail(ErrorKind::usage, flag,
         "weights and paths do not alternate in {} values ({} of every other one are numbers); give PATH..., "
         "or WEIGHT "
         "PATH WEIGHT PATH ...",
         values.size(), numbers);
  }
  for (const std::string& value : values) blend.prefixes.emplace_back(stripped(value));
  return blend;
}

double pairwise_sum(std::span<const double> values) {
  const std::size_t count = values.size();
  if (count < 8) {
    double sum = 0;
    for (const double value : values) sum += value;
    return sum;
  }
  if (count > 128) {
    const std::size_t half = count / 2 - (count / 2) % 8;
    return pairwise_sum(values.first(half)) + pairwise_sum(values.subspan(half));
  }
  std::array<double, 8> lanes{};
  std::copy_n(values.begin(), 8, lanes.begin());
  std::size_t i = 8;
  for (; i < count - count % 8; i += 8) {
    for (std::size_t lane = 0; lane < 8; ++lane) lanes[lane] += values[i + lane];
  }
  double sum =
      ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
  for (; i < count; ++i) sum += values[i];
  return sum;
}

std::vector<double> normalized(std::span<const double> values) {
  const double sum = pairwise_sum(values);
  std::vector<double> result(values.begin(), values.end());
  for (double& value : result) value /= sum;
  return result;
}

SplitFractions parse_split(std::string_view text) {
  const auto refuse = [&](std::string_view why) {
    fail(ErrorKind::usage, "--split", "{}: {}; expected up to three weights such as 969,30,1", text, why);
  };
  std::vector<double> weights;
  std::size_t place = 0;
  while (place <= text.size()) {
    const std::size_t end = std::min(text.find_first_of(",/", place), text.size());
    const auto value = parse_number(text.substr(place, end - place));
    if (!value || !std::isfinite(*value)) refuse("has a part that is no number");
    if (*value < 0) refuse("has a negative weight");
    weights.push_back(*value);
    place = end + 1;
  }
  if (weights.size() > 3) refuse("has more than three weights");
  weights.resize(3, 0.0);
  if (!(pairwise_sum(weights) > 0)) refuse("has no weight above 0");
  weights = normalized(weights);
  SplitFractions fractions;
  double begin = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const double end = begin + weights[i];
    if (end > begin) fractions[i] = {begin, end};
    begin = end;
  }
  return fractions;
}

std::int64_t split_boundary(double fraction, std::int64_t count) {
  // The default rounding mode is to nearest, ties to even, as Python's round().
  return std::clamp<std::int64_t>(
      static_cast<std::int64_t>(std::nearbyint(fraction * static_cast<double>(count))), 0, count);
}

std::int64_t blend_share(std::int64_t samples, double weight) {
  return static_cast<std::int64_t>(std::ceil(static_cast<double>(samples) * weight));
}

std::int64_t blend_request(std::int64_t samples, double weight) {
  return static_cast<std::int64_t>(
      std::ceil(static_cast<double>(blend_share(samples, weight)) * (1 + 0.005)));
}

std::vector<std::uint16_t> blend_order(std::span<const double> weights, std::int64_t samples) {
  std::vector<std::uint16_t> order(static_cast<std::size_t>(samples));
  std::vector<double> taken(weights.size(), 0.0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const double step = std::max(static_cast<double>(i), 1.0);
    std::size_t best = 0;
    double largest = weights[0] * step - taken[0];
    for (std::size_t d = 1; d < weights.size(); ++d) {
      const double error = weights[d] * step - taken[d];
      if (error > largest) {
        largest = error;
        best = d;
      }
    }
    order[i] = static_cast<std::uint16_t>(best);
    taken[best] += 1;
  }
  return order;
}

BlendedDataset::BlendedDataset(std::vector<std::unique_ptr<SampleSource>> sources,
                               std::span<const double> weights, std::int64_t samples, std::string_view place)
    : sources_(std::move(sources)), order_(blend_order(weights, samples)) {
  const auto count = static_cast<std::int64_t>(sources_.size());
  block_ = std::max<std::int64_t>(256, 4 * count);
  std::vector<std::int64_t> taken(sources_.size(), 0);
  for (std::size_t i = 0; i < order_.size(); ++i) {
    if (static_cast<std::int64_t>(i) % block_ == 0) taken_.insert(taken_.end(), taken.begin(), taken.end());
    ++taken[order_[i]];
  }
  for (std::size_t d = 0; d < sources_.size(); ++d) {
    if (taken[d] > sources_[d]->size()) {
      fail(ErrorKind::input, place,
           "the blend takes {} samples from dataset {} (weight {}), which has {}; give it a weight nearer to "
           "the others', "
           "or ask for fewer samples",
           taken[d], d + 1, weights[d], sources_[d]->size());
    }
  }
}

void BlendedDataset::read(std::int64_t index, std::span<Token> tokens) const {
  MEGALITH_ASSERT(index >= 0 && index < size(), format("sample {} of {}", index, size()));
  const std::uint16_t source = order_[static_cast<std::size_t>(index)];
  const std::int64_t block = index / block_;
  const auto first = order_.begin() + block * block_;
  const auto before = std::count(first, order_.begin() + index, source);
  const std::int64_t taken = taken_[static_cast<std::size_t>(block) * sources_.size() + source];
  sources_[source]->read(taken + before, tokens);
}

}  // namespace megalith
