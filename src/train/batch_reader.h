// From samples to microbatches: reads samples of a dataset, makes inputs, targets, loss masks and positions
// as Megatron-LM does, and brings them to the device.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "device/device.h"
#include "model/gpt_config.h"
#include "model/micro_batch.h"

namespace megalith {

/// What end-of-document tokens do inside a sample (Megatron's flags of these names).
struct DocumentRules {
  Token eod = -1;
  bool reset_position_ids = false;    ///< positions start at 0 again after an eod
  bool reset_attention_mask = false;  ///< attention does not cross an eod
  bool eod_mask_loss = false;         ///< an eod among the inputs gives no loss
};

/// B sequences of S tokens on the host.
struct HostBatch {
  std::vector<Token> tokens;               ///< [B*S]
  std::vector<Token> targets;              ///< [B*S]
  std::vector<std::int32_t> positions;     ///< [B*S]
  std::vector<double> loss_mask;           ///< [B*S], 0 or 1
  std::vector<float> loss_mask_narrow;     ///< the same numbers
  std::vector<std::int64_t> samples;       ///< [B]
  std::vector<std::int32_t> cu_seqlens;    ///< [B, S + 1], padded with S; empty without reset_attention_mask
  std::int64_t unmasked = 0;               ///< ones in loss_mask
  std::vector<Token> words;                ///< the different tokens, in order of their first occurrence
  std::vector<std::int32_t> word_numbers;  ///< [B*S], place of each token in `words`
};

/// Samples [first, first + count) of the source, in order; sample numbers start at `first`.
HostBatch read_batch(const SampleSource& source, std::int64_t first, std::int64_t count,
                     std::int64_t sequence, const DocumentRules& rules);

/// Fills words and word_numbers; read_batch leaves them empty.
void number_words(HostBatch& batch);

/// most_words of the run's ParameterStore: the tokens of a global batch where a tied vocabulary is larger,
/// else 0.
std::int64_t most_words(const GptConfig& config, std::int64_t global_batch);

/// Device memory for one microbatch, reused every step.
class DeviceBatch {
 public:
  /// `most_words`: room for the words of a global batch; 0: none.
  DeviceBatch(Device& device, const GptConfig& config, std::int64_t micro_batch, bool with_documents,
              std::int64_t most_words);

  /// Sequences [first, first + micro_batch) of `host`. Enqueued on the compute queue and not waited for:
  /// `host` stays as it is until the queue has passed, for instance until loss_sum().
  const MicroBatch& load(const HostBatch& host, std::int64_t first);
  /// Numbers the words of `host` and gives them, int32; enqueued like load(). Absent without room for words.
  Tensor load_words(HostBatch& host);
  const MicroBatch& batch() const { return batch_; }
  void set_gradient_scale(double scale);
  void clear_loss_sum();
  /// Waits for the device.
  double loss_sum();
  /// Device memory of one such object.
  static std::size_t planned_bytes(const GptConfig& config, std::int64_t micro_batch, bool with_documents,
                                   std::int64_t most_words);

 private:
  Device& device_;
  std::int64_t sequence_;
  DType sum_;
  DeviceMemory memory_;
  MicroBatch batch_;
  Tensor words_;      ///< int32 [most words]
  double scale_ = 0;  ///< a copy to the device may run later than set_gradient_scale() returns
};

}  // namespace megalith
