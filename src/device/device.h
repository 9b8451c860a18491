// Device: the whole seam between Megalith and the hardware. Memory, three in-order queues, events, and the
// kernels. A new device implements this class and nothing above device/ changes.
//
// Rules for every kernel
// - A kernel is enqueued on a queue and may run later; its Tensor arguments are copied, the memory they view
//   must stay alive and unchanged until the queue has passed it.
// - Outputs do not alias inputs unless the kernel says so.
// - "compute type" means the activations' type: float32, bfloat16, or float64 (reference device). "sum type"
//   is float64 where the compute type is float64, else float32: statistics, gradients of parameters and
//   losses use it.
// - Tensors are contiguous unless the kernel says "strided"; the innermost dimension is always contiguous.
// - Shapes are checked by the functions of device/check.h before anything is enqueued; a mismatch is a broken
//   invariant (Error, internal).
// - Values that change every step (learning rate, step number, clip factor, sample numbers) are read from
//   device memory when the kernel runs, never baked into the call.
// - Results depend on the device, its instruction set and its number of threads, and on nothing else.
//
// Shape legend: B sequences, S query positions, T key positions, N heads, G key-value groups, D head size,
// H hidden size, V vocabulary rows held here, R rows (= tokens), C columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/philox.h"
#include "core/tensor.h"

namespace megalith {

enum class QueueKind : std::uint8_t { compute, communication, copy };

/// A point in a queue. Waiting for an event of the same queue is free.
struct Event {
  QueueKind queue = QueueKind::compute;
  std::uint64_t number = 0;
};

/// The type of statistics, losses and parameter gradients for a compute type.
constexpr DType sum_type(DType compute) {
  return compute == DType::float64 ? DType::float64 : DType::float32;
}

/// How an operand's scale tensor is laid out (float8 and other scaled formats). Only `none` is used so far.
enum class ScaleLayout : std::uint8_t { none, per_tensor, per_block };

struct MatmulOperand {
  Tensor data;              ///< [rows, columns], strided (rows may be apart)
  bool transposed = false;  ///< use data^T
  Tensor scale = {};        ///< optional: data is multiplied by it
  ScaleLayout scale_layout = ScaleLayout::none;
};

enum class Activation : std::uint8_t { none, gelu_tanh, gelu_erf };

/// c = activation(alpha * op(a) * op(b) + bias) or, with accumulate, c += alpha * op(a) * op(b).
/// Sums run in the sum type. a and b have one type; c has that type or its sum type. With `activation`,
/// `pre_activation` (optional, like c) receives alpha*op(a)*op(b) + bias. accumulate excludes bias and
/// activation.
struct MatmulArgs {
  MatmulOperand a;  ///< op(a): [M, K]
  MatmulOperand b;  ///< op(b): [K, N]
  Tensor c;         ///< [M, N], strided
  double alpha = 1.0;
  bool accumulate = false;
  Tensor bias = {};  ///< optional, [N], type of a
  Activation activation = Activation::none;
  Tensor pre_activation = {};  ///< optional, [M, N], type of c
};

/// Which elements a dropout drops: element (sample, head, row, column) by dropout_bits of core/philox.h.
/// Survivors are multiplied by 1/(1-probability). probability 0 means no dropout; `samples` is then not read.
struct DropoutArgs {
  double probability = 0.0;
  PhiloxKey key{};
  Tensor samples = {};            ///< int64 [B]: consumed-sample number of each sequence
  std::int64_t first_head = 0;    ///< global number of local head 0 (tensor parallelism)
  std::int64_t first_row = 0;     ///< global position of local row 0 (sequence and context parallelism)
  std::int64_t first_column = 0;  ///< global number of local column 0
};

/// Scaled dot-product attention with online softmax: no [S, T] buffer is ever stored.
///   p = softmax(scale * q k^T + mask), out = dropout(p) v, log_sum_exp = ln sum exp(scale * q k^T + mask).
/// Query position i is query_offset + i, key position j is key_offset + j; causal keeps keys at or before the
/// query. A query without any key gives out = 0 and log_sum_exp = -infinity. N is a multiple of G; query head
/// n uses group n / (N/G). Partial results over disjoint keys merge by their log_sum_exp.
struct AttentionArgs {
  Tensor query;        ///< [B, S, N, D], strided
  Tensor key;          ///< [B, T, G, D], strided; with block_table: [blocks, block, G, D]
  Tensor value;        ///< as key
  Tensor out;          ///< [B, S, N, D], strided
  Tensor log_sum_exp;  ///< sum type [B, N, S]
  double scale = 1.0;
  bool causal = true;
  std::int64_t query_offset = 0;
  std::int64_t key_offset = 0;
  Tensor cu_seqlens =
      {};  ///< optional int32 [documents + 1]: attention stays inside each document; B is then 1 and
           ///< the same boundaries cut queries and keys (positions without offsets)
  Tensor key_lengths = {};  ///< optional int32 [B]: only keys j < key_lengths[b] exist; without block_table
                            ///< too. With it, query i of sequence b stands at position key_lengths[b] - S + i
  Tensor block_table =
      {};  ///< optional int32 [B, blocks per sequence]: paged keys and values; needs key_lengths
  DropoutArgs dropout = {};
};

/// Gradients of AttentionArgs' query, key and value. key_lengths and block_table are not allowed.
struct AttentionBackwardArgs {
  AttentionArgs forward;  ///< the forward call; out and log_sum_exp are inputs here
  Tensor out_grad;        ///< [B, S, N, D], strided
  Tensor query_grad;      ///< [B, S, N, D], strided, overwritten
  Tensor key_grad;        ///< [B, T, G, D], strided, overwritten
  Tensor value_grad;      ///< as key_grad
  Tensor row_dots;        ///< scratch, sum type [B, N, S]: receives sum_d out * out_grad
};

/// y = (x - mean) * rstd * weight + bias over the last dimension; rstd = 1/sqrt(variance + epsilon).
struct LayerNormArgs {
  Tensor x;       ///< [R, H]
  Tensor weight;  ///< [H], compute type
  Tensor bias;    ///< [H], compute type
  Tensor y;       ///< [R, H]
  Tensor mean;    ///< sum type [R]
  Tensor rstd;    ///< sum type [R]
  double epsilon = 1e-5;
};

struct LayerNormBackwardArgs {
  Tensor y_grad;       ///< [R, H]
  Tensor x;            ///< [R, H]
  Tensor weight;       ///< [H]
  Tensor mean;         ///< [R]
  Tensor rstd;         ///< [R]
  Tensor residual;     ///< optional [R, H]: added to x_grad (the gradient that skips the norm)
  Tensor x_grad;       ///< optional [R, H], overwritten; may be residual's or y_grad's memory
  Tensor weight_grad;  ///< optional, sum type [H], added to
  Tensor bias_grad;    ///< optional, sum type [H], added to
};

/// y = residual + dropout(x + bias). Forward of the end of an attention or MLP block.
/// x, residual and y are [B, S, H]; y may be x's or residual's memory.
struct DropoutAddArgs {
  Tensor x;
  Tensor bias;      ///< optional [H], compute type
  Tensor residual;  ///< optional
  Tensor y;
  DropoutArgs dropout;
};

/// rows[r] = table[tokens[r] - first_row], zero where the token is not in this table's range (vocabulary
/// parallelism); with accumulate, added to rows.
struct EmbeddingArgs {
  Tensor tokens;  ///< int32 [R]
  Tensor table;   ///< [V, H]
  Tensor rows;    ///< [R, H], type of table
  std::int64_t first_row = 0;
  bool accumulate = false;
};

/// table_grad[tokens[r] - first_row] += rows_grad[r], in the order of r for every row of the table.
struct EmbeddingBackwardArgs {
  Tensor tokens;      ///< int32 [R]
  Tensor rows_grad;   ///< [R, H], compute type
  Tensor table_grad;  ///< sum type [V, H]
  std::int64_t first_row = 0;
};

/// Vocabulary-parallel cross-entropy, first pass: each row's maximum, sum of exp(logit - maximum) and the
/// target's logit (0 where another rank holds the target). Columns at or past `columns` (storage padding)
/// count as -infinity. Ranks combine maxima, then sums and target logits; loss = ln(row_sum) + row_max -
/// target_logit.
struct CrossEntropyArgs {
  Tensor logits;   ///< compute type [R, C], strided
  Tensor targets;  ///< int32 [R], global vocabulary numbers
  std::int64_t first_column = 0;
  std::int64_t columns = 0;  ///< true columns held here
  Tensor row_max;            ///< sum type [R]
  Tensor row_sum;            ///< sum type [R]
  Tensor target_logit;       ///< sum type [R]
};

/// losses[r] = ln(row_sum[r]) + row_max[r] - target_logit[r], all sum type [R].
struct CrossEntropyLossArgs {
  Tensor row_max;
  Tensor row_sum;
  Tensor target_logit;
  Tensor losses;
};

/// Second pass, in place: logits[r, c] = (softmax(logits)[r, c] - [c == target]) * weights[r] * scale;
/// padding columns become 0.
struct CrossEntropyBackwardArgs {
  Tensor logits;   ///< compute type [R, C], strided; overwritten with their gradient
  Tensor targets;  ///< int32 [R]
  std::int64_t first_column = 0;
  std::int64_t columns = 0;
  Tensor row_max;  ///< sum type [R]
  Tensor row_sum;  ///< sum type [R]
  Tensor weights;  ///< sum type [R]: loss mask
  Tensor scale;    ///< float64 [1]: loss scale / number of unmasked tokens of the global batch
};

/// Fixed blocks make the global norm independent of how parameters are sharded or bucketed.
inline constexpr std::int64_t norm_block = 4096;

/// AdamW (Loshchilov and Hutter 2019), decoupled decay, bias-corrected; g = gradient * gradient_scale:
///   m = beta1 m + (1-beta1) g;  v = beta2 v + (1-beta2) g^2
///   w = w - lr * lr_mult * (m / (1-beta1^t) / (sqrt(v / (1-beta2^t)) + eps) + weight_decay * w)
struct AdamWArgs {
  Tensor weights;   ///< master weights, float32 or float64, [n]
  Tensor gradient;  ///< same type, [n]
  Tensor exp_avg;
  Tensor exp_avg_sq;
  Tensor compute_copy = {};  ///< optional [n], compute type: receives the new weights rounded
  Tensor learning_rate;      ///< float64 [1]
  Tensor step;               ///< int64 [1]: t, counted from 1
  Tensor gradient_scale;     ///< float64 [1]: clip factor / loss scale; a negative value means skip this step
  double lr_mult = 1.0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
};

/// SGD: g = gradient * gradient_scale + weight_decay * w; buffer = momentum * buffer + g; w -= lr * lr_mult *
/// buffer. Without momentum the buffer is absent and g is used.
struct SgdArgs {
  Tensor weights;
  Tensor gradient;
  Tensor momentum_buffer = {};
  Tensor compute_copy = {};
  Tensor learning_rate;   ///< float64 [1]
  Tensor gradient_scale;  ///< float64 [1]; negative: skip
  double lr_mult = 1.0;
  double momentum = 0.0;
  double weight_decay = 0.0;
};

/// From squared block norms to the clip factor. norm = sqrt(sum of partials) * inverse_loss_scale;
/// gradient_scale = inverse_loss_scale * min(1, max_norm / (norm + 1e-6)) (max_norm 0: no clipping);
/// where the norm is not finite gradient_scale is -1.
struct ClipFactorArgs {
  Tensor partials;            ///< float64 [n], added in order
  Tensor inverse_loss_scale;  ///< float64 [1]
  double max_norm = 0.0;
  Tensor norm;            ///< float64 [1]
  Tensor gradient_scale;  ///< float64 [1]
};

/// A box of a logical tensor, for initialisation by element number.
struct InitializeNormalArgs {
  Tensor to;                       ///< [rows, columns] local part, any float type
  std::int64_t first_element = 0;  ///< logical number of local element (0, 0)
  std::int64_t row_step = 0;       ///< logical distance between rows
  PhiloxKey key{};
  double mean = 0.0;
  double deviation = 1.0;
};

class Device;

/// Owns a block of device memory. Move-only.
class DeviceMemory {
 public:
  DeviceMemory() = default;
  DeviceMemory(Device& device, std::size_t bytes);
  ~DeviceMemory();
  DeviceMemory(DeviceMemory&& other) noexcept;
  DeviceMemory& operator=(DeviceMemory&& other) noexcept;
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  DeviceAddress address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  /// The whole block as one tensor; `shape` must fit.
  Tensor tensor(DType dtype, const Shape& shape, std::size_t byte_offset = 0) const;

 private:
  Device* device_ = nullptr;
  DeviceAddress address_;
  std::size_t bytes_ = 0;
};

class Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// "reference", "cpu", ...
  virtual std::string_view name() const = 0;
  /// One line for people: instruction set, threads, libraries and their versions. Recorded in checkpoints:
  /// equal text means equal bits.
  virtual std::string description() const = 0;
  /// Whether activations may have this type.
  virtual bool supports(DType compute) const = 0;

  // --- memory
  /// 64-byte aligned. Raises Error (environment) with the size where there is no room. Contents are
  /// undefined.
  virtual DeviceAddress allocate(std::size_t bytes) = 0;
  /// Waits until no queue uses the block.
  virtual void release(DeviceAddress address) = 0;
  /// Bytes allocated now, and the most there ever were.
  virtual std::size_t allocated_bytes() const = 0;
  virtual std::size_t peak_bytes() const = 0;

  // --- queues
  virtual Event record(QueueKind queue) = 0;
  /// Work enqueued on `queue` after this call starts when the event has passed.
  virtual void wait(QueueKind queue, const Event& event) = 0;
  /// Blocks the caller until all work on the queue is done.
  virtual void synchronize(QueueKind queue) = 0;
  /// Name what the host does from one to the other, for a device that traces; regions nest. `number` below 0:
  /// none. Use Region.
  virtual void begin_region(std::string_view, std::int64_t /*number*/) {}
  virtual void end_region() {}
  /// Host memory must stay alive (and for to_device unchanged) until the queue has passed the copy.
  virtual void copy_to_device(QueueKind queue, const Tensor& to, const void* host) = 0;
  virtual void copy_to_host(QueueKind queue, void* host, const Tensor& from) = 0;

  // --- kernels
  /// to[...] = value. Any type, strided.
  virtual void fill(QueueKind queue, const Tensor& to, double value) = 0;
  /// to = from, converting between float types (round to nearest even). Equal shapes, strided.
  virtual void copy(QueueKind queue, const Tensor& to, const Tensor& from) = 0;
  /// to = alpha * a + beta * b, elementwise, equal shapes; types may differ. to may be a's or b's memory.
  virtual void add(QueueKind queue, const Tensor& to, const Tensor& a, double alpha, const Tensor& b,
                   double beta) = 0;
  /// Normally distributed elements by their logical number (core/philox.h).
  virtual void initialize_normal(QueueKind queue, const InitializeNormalArgs& args) = 0;
  virtual void matmul(QueueKind queue, const MatmulArgs& args) = 0;
  /// sums[c] += sum over r of x[r, c]; x compute type [R, C], sums sum type [C]. A bias's gradient.
  virtual void add_column_sums(QueueKind queue, const Tensor& sums, const Tensor& x) = 0;
  /// y = activation(x), equal shapes, compute type; y may be x's memory. GELU: Hendrycks and Gimpel 2016.
  virtual void activation_forward(QueueKind queue, Activation kind, const Tensor& y, const Tensor& x) = 0;
  /// x_grad = y_grad * activation'(x); x_grad may be y_grad's or x's memory.
  virtual void activation_backward(QueueKind queue, Activation kind, const Tensor& x_grad,
                                   const Tensor& y_grad, const Tensor& x) = 0;
  virtual void attention_forward(QueueKind queue, const AttentionArgs& args) = 0;
  virtual void attention_backward(QueueKind queue, const AttentionBackwardArgs& args) = 0;
  virtual void layer_norm_forward(QueueKind queue, const LayerNormArgs& args) = 0;
  virtual void layer_norm_backward(QueueKind queue, const LayerNormBackwardArgs& args) = 0;
  virtual void dropout_add_forward(QueueKind queue, const DropoutAddArgs& args) = 0;
  /// x_grad = y_grad * mask / (1-p); [B, S, H]; x_grad may be y_grad's memory. The residual's gradient is
  /// y_grad.
  virtual void dropout_backward(QueueKind queue, const Tensor& x_grad, const Tensor& y_grad,
                                const DropoutArgs& dropout) = 0;
  virtual void embedding_forward(QueueKind queue, const EmbeddingArgs& args) = 0;
  virtual void embedding_backward(QueueKind queue, const EmbeddingBackwardArgs& args) = 0;
  virtual void cross_entropy_forward(QueueKind queue, const CrossEntropyArgs& args) = 0;
  virtual void cross_entropy_loss(QueueKind queue, const CrossEntropyLossArgs& args) = 0;
  virtual void cross_entropy_backward(QueueKind queue, const CrossEntropyBackwardArgs& args) = 0;
  /// total[0] += sum of x[i] * weights[i]; total float64 [1]; x and weights sum type [n].
  virtual void add_weighted_sum(QueueKind queue, const Tensor& total, const Tensor& x,
                                const Tensor& weights) = 0;
  /// partials[i] = sum of squares of x's block i of norm_block elements; partials float64 [ceil(n /
  /// norm_block)].
  virtual void block_norms(QueueKind queue, const Tensor& partials, const Tensor& x) = 0;
  virtual void clip_factor(QueueKind queue, const ClipFactorArgs& args) = 0;
  virtual void adamw(QueueKind queue, const AdamWArgs& args) = 0;
  virtual void sgd(QueueKind queue, const SgdArgs& args) = 0;
};

/// Names the work of a scope in a trace: Region region(device, "layer", 3);
class Region {
 public:
  Region(Device& device, std::string_view name, std::int64_t number = -1) : device_(device) {
    device.begin_region(name, number);
  }
  ~Region() { device_.end_region(); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

 private:
  Device& device_;
};

struct DeviceOptions {
  std::string name = "cpu";
  int threads = 0;  ///< 0: all processors this process may use
  bool strict =
      false;  ///< reference device only: addresses without access rights, late and out-of-step queues
  std::uint64_t strict_seed = 1;  ///< order in which strict queues run
};

/// Opens a device. Raises Error (usage) for an unknown name, with the known ones, or (environment) where this
/// build or machine lacks it, with what to install.
std::unique_ptr<Device> make_device(const DeviceOptions& options);

struct DeviceStatus {
  std::string name;
  bool available = false;
  std::string detail;  ///< description, or why it is missing and what that costs
};

/// Every device this program knows, for `megalith doctor` and the build report.
std::vector<DeviceStatus> list_devices();

}  // namespace megalith
