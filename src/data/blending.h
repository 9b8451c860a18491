// Blends of datasets as Megatron-LM makes them: how --data-path and --split are read, how many samples each
// dataset must give, and which dataset each sample of the blend comes from.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "data/dataset.h"

namespace megalith {

/// Datasets and their weights as given; no weights: each dataset counts by its length.
struct Blend {
  std::vector<std::string> prefixes;
  std::vector<double> weights;
};

/// Reads "PREFIX", "PREFIX PREFIX ..." or "WEIGHT PREFIX WEIGHT PREFIX ...". `flag` is named in errors.
/// Raises Error (usage) for mixed lists and for weights that are not positive and finite.
Blend parse_blend(std::span<const std::string> values, std::string_view flag);

/// Sum in numpy's order (pairwise, eight at a time), so that weights normalise to the same bits.
double pairwise_sum(std::span<const double> values);
/// Each value divided by the sum of all.
std::vector<double> normalized(std::span<const double> values);

/// Fractions [begin, end) of the training, validation and test sets; nothing where a set has weight 0.
using SplitFractions = std::array<std::optional<std::pair<double, double>>, 3>;
/// "969,30,1", or "969/30/1" as Megatron-LM takes it too. Raises Error (usage).
SplitFractions parse_split(std::string_view text);
/// The boundary round(fraction * count), halves to even.
std::int64_t split_boundary(double fraction, std::int64_t count);

/// Samples that a dataset of this normalised weight gives to a blend of `samples`: ceil(samples * weight).
std::int64_t blend_share(std::int64_t samples, double weight);
/// Samples it is asked to prepare: ceil(share * 1.005).
std::int64_t blend_request(std::int64_t samples, double weight);

/// For each of `samples` the dataset it comes from: the one with the largest weight * max(i, 1) - taken, the
/// first of equals. `weights` are normalised.
std::vector<std::uint16_t> blend_order(std::span<const double> weights, std::int64_t samples);

/// Samples of several sources in that order.
class BlendedDataset : public SampleSource {
 public:
  /// Raises Error (input) where a source has fewer samples than the order takes from it.
  BlendedDataset(std::vector<std::unique_ptr<SampleSource>> sources, std::span<const double> weights,
                 std::int64_t samples, std::string_view place);

  std::int64_t size() const override { return static_cast<std::int64_t>(order_.size()); }
  void read(std::int64_t index, std::span<Token> tokens) const override;

 private:
  std::vector<std::unique_ptr<SampleSource>> sources_;
  std::vector<std::uint16_t> order_;
  std::int64_t block_ = 0;
  std::vector<std::int64_t> taken_;  ///< [block, source]: samples taken before each block of the order
};

}  // namespace megalith
