#include "train/batch_reader.h"

#include <algorithm>

#include "core/error.h"

namespace megalith {
namespace {

constexpr std::size_t tensor_alignment = 64;

// Where each tensor of a microbatch starts in one block of memory.
struct BatchPlaces {
  BatchPlaces(const GptConfig& config, std::int64_t micro_batch, bool with_documents,
              std::int64_t most_words) {
    const auto rows = static_cast<std::size_t>(micro_batch * config.sequence);
    const auto sequences = static_cast<std::size_t>(micro_batch);
    tokens = place(rows * sizeof(Token));
    targets = place(rows * sizeof(Token));
    positions = place(rows * sizeof(std::int32_t));
    mask = place(rows * size_of(config.sum()));
    samples = place(sequences * sizeof(std::int64_t));
    documents = place(with_documents ? (rows + sequences) * sizeof(std::int32_t) : 0);
    word_numbers = place(most_words > 0 ? rows * sizeof(std::int32_t) : 0);
    words = place(static_cast<std::size_t>(most_words) * sizeof(Token));
    loss = place(sizeof(double));
    scale = place(sizeof(double));
  }

  std::size_t tokens = 0;
  std::size_t targets = 0;
  std::size_t positions = 0;
  std::size_t mask = 0;
  std::size_t samples = 0;
  std::size_t documents = 0;
  std::size_t word_numbers = 0;
  std::size_t words = 0;
  std::size_t loss = 0;
  std::size_t scale = 0;
  std::size_t end = 0;

 private:
  std::size_t place(std::size_t bytes) {
    const std::size_t start = end;
    end = (start + bytes + tensor_alignment - 1) / tensor_alignment * tensor_alignment;
    return start;
  }
};

void add_sample(HostBatch& batch, std::span<const Token> tokens, const DocumentRules& rules) {
  const auto sequence = static_cast<std::int64_t>(tokens.size()) - 1;
  std::int32_t position = 0;
  std::vector<std::int32_t> boundaries{0};
  for (std::int64_t i = 0; i < sequence; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const bool is_eod = rules.eod >= 0 && tokens[index] == rules.eod;
    batch.tokens.push_back(tokens[index]);
    batch.targets.push_back(tokens[index + 1]);
    batch.positions.push_back(position);
    const bool counts = !(rules.eod_mask_loss && is_eod);
    batch.loss_mask.push_back(counts ? 1.0 : 0.0);
    batch.unmasked += counts ? 1 : 0;
    position = rules.reset_position_ids && is_eod ? 0 : position + 1;
    if (is_eod) boundaries.push_back(static_cast<std::int32_t>(i + 1));
  }
  if (rules.reset_attention_mask) {
    boundaries.resize(static_cast<std::size_t>(sequence) + 1, static_cast<std::int32_t>(sequence));
    batch.cu_seqlens.insert(batch.cu_seqlens.end(), boundaries.begin(), boundaries.end());
  }
}

}  // namespace

HostBatch read_batch(const SampleSource& source, std::int64_t first, std::int64_t count,
                     std::int64_t sequence, const DocumentRules& rules) {
  HostBatch batch;
  std::vector<Token> tokens(static_cast<std::size_t>(sequence) + 1);
  for (std::int64_t sample = first; sample < first + count; ++sample) {
    source.read(sample, tokens);
    add_sample(batch, tokens, rules);
    batch.samples.push_back(sample);
  }
  batch.loss_mask_narrow.assign(batch.loss_mask.begin(), batch.loss_mask.end());
  return batch;
}

void number_words(HostBatch& batch) {
  const auto largest = std::max_element(batch.tokens.begin(), batch.tokens.end());
  std::vector<std::int32_t> numbers(
      largest == batch.tokens.end() ? 0 : static_cast<std::size_t>(*largest) + 1, -1);
  batch.words.clear();
  batch.word_numbers.clear();
  for (const Token token : batch.tokens) {
    std::int32_t& number = numbers[static_cast<std::size_t>(token)];
    if (number < 0) {
      number = static_cast<std::int32_t>(batch.words.size());
      batch.words.push_back(token);
    }
    batch.word_numbers.push_back(number);
  }
}

std::int64_t most_words(const GptConfig& config, std::int64_t global_batch) {
  const std::int64_t tokens = global_batch * config.sequence;
  return config.tied && tokens < config.vocabulary ? tokens : 0;
}

DeviceBatch::DeviceBatch(Device& device, const GptConfig& config, std::int64_t micro_batch,
                         bool with_documents, std::int64_t most_words)
    : device_(device), sequence_(config.sequence), sum_(config.sum()) {
  const BatchPlaces places(config, micro_batch, with_documents, most_words);
  const std::int64_t rows = micro_batch * config.sequence;
  memory_ = DeviceMemory(device, places.end);
  batch_.tokens = memory_.tensor(DType::int32, {rows}, places.tokens);
  batch_.targets = memory_.tensor(DType::int32, {rows}, places.targets);
  batch_.positions = memory_.tensor(DType::int32, {rows}, places.positions);
  batch_.loss_mask = memory_.tensor(sum_, {rows}, places.mask);
  batch_.samples = memory_.tensor(DType::int64, {micro_batch}, places.samples);
  if (with_documents)
    batch_.cu_seqlens = memory_.tensor(DType::int32, {micro_batch, sequence_ + 1}, places.documents);
  if (most_words > 0) {
    batch_.word_numbers = memory_.tensor(DType::int32, {rows}, places.word_numbers);
    words_ = memory_.tensor(DType::int32, {most_words}, places.words);
  }
  batch_.loss_sum = memory_.tensor(DType::float64, {1}, places.loss);
  batch_.gradient_scale = memory_.tensor(DType::float64, {1}, places.scale);
}

std::size_t DeviceBatch::planned_bytes(const GptConfig& config, std::int64_t micro_batch, bool with_documents,
                                       std::int64_t most_words) {
  return BatchPlaces(config, micro_batch, with_documents, most_words).end;
}

Tensor DeviceBatch::load_words(HostBatch& host) {
  if (!words_) return {};
  number_words(host);
  const Tensor words = words_.sliced(0, 0, static_cast<std::int64_t>(host.words.size()));
  device_.copy_to_device(QueueKind::compute, words, host.words.data());
  return words;
}

const MicroBatch& DeviceBatch::load(const HostBatch& host, std::int64_t first) {
  const auto copy = [&](const Tensor& to, const auto& from, std::int64_t row_size) {
    const auto start = static_cast<std::size_t>(first * row_size);
    MEGALITH_ASSERT(start + static_cast<std::size_t>(to.count()) <= from.size(),
                    format("sequences from {} on of a batch with fewer", first));
    device_.copy_to_device(QueueKind::compute, to, from.data() + start);
  };
  copy(batch_.tokens, host.tokens, sequence_);
  copy(batch_.targets, host.targets, sequence_);
  copy(batch_.positions, host.positions, sequence_);
  copy(batch_.samples, host.samples, 1);
  if (sum_ == DType::float64) {
    copy(batch_.loss_mask, host.loss_mask, sequence_);
  } else {
    copy(batch_.loss_mask, host.loss_mask_narrow, sequence_);
  }
  if (batch_.word_numbers && !host.word_numbers.empty())
    copy(batch_.word_numbers, host.word_numbers, sequence_);
  if (batch_.cu_seqlens) copy(batch_.cu_seqlens, host.cu_seqlens, sequence_ + 1);
  return batch_;
}

void DeviceBatch::set_gradient_scale(double scale) {
  device_.synchronize(QueueKind::compute);
  scale_ = scale;
  device_.copy_to_device(QueueKind::compute, batch_.gradient_scale, &scale_);
}

void DeviceBatch::clear_loss_sum() {
  device_.fill(QueueKind::compute, batch_.loss_sum, 0.0);
}

double DeviceBatch::loss_sum() {
  double sum = 0;
  device_.copy_to_host(QueueKind::compute, &sum, batch_.loss_sum);
  device_.synchronize(QueueKind::compute);
  return sum;
}

}  // namespace megalith
