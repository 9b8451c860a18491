#include "device/reference/reference_device.h"

#include "device/check.h"
#include "device/reference/kernels.h"
#include "device/reference/memory.h"
#include "device/reference/queues.h"

namespace megalith {
namespace {

class ReferenceDevice final : public Device {
 public:
  explicit ReferenceDevice(const DeviceOptions& options)
      : strict_(options.strict),
        strict_seed_(options.strict_seed),
        memory_(strict_ ? reference::make_strict_memory() : reference::make_plain_memory()),
        view_(memory_->view()),
        queues_(strict_ ? reference::make_strict_queues(strict_seed_) : reference::make_immediate_queues()) {}

  std::string_view name() const override { return "reference"; }
  std::string description() const override {
    const std::string_view text = "reference: readable loops, float32 and float64, 1 thread";
    return strict_ ? format("{}, strict (seed {})", text, strict_seed_) : std::string(text);
  }
  bool supports(DType compute) const override {
    return compute == DType::float32 || compute == DType::float64;
  }

  DeviceAddress allocate(std::size_t bytes) override { return memory_->allocate(bytes); }
  void release(DeviceAddress address) override {
    queues_->drain();
    memory_->release(address);
  }
  std::size_t allocated_bytes() const override { return memory_->allocated_bytes(); }
  std::size_t peak_bytes() const override { return memory_->peak_bytes(); }

  Event record(QueueKind queue) override { return queues_->record(queue); }
  void wait(QueueKind queue, const Event& event) override { queues_->wait(queue, event); }
  void synchronize(QueueKind queue) override { queues_->synchronize(queue); }
  void copy_to_device(QueueKind queue, const Tensor& to, const void* host) override {
    check_copy_to_device(to, host);
    run(queue, [=](const auto& view) { reference::copy_to_device(view, to, host); });
  }
  void copy_to_host(QueueKind queue, void* host, const Tensor& from) override {
    check_copy_to_host(host, from);
    run(queue, [=](const auto& view) { reference::copy_to_host(view, host, from); });
  }

  void fill(QueueKind queue, const Tensor& to, double value) override {
    check_fill(to);
    run(queue, [=](const auto& view) { reference::fill(view, to, value); });
  }
  void copy(QueueKind queue, const Tensor& to, const Tensor& from) override {
    check_copy(to, from);
    run(queue, [=](const auto& view) { reference::copy(view, to, from); });
  }
  void add(QueueKind queue, const Tensor& to, const Tensor& a, double alpha, const Tensor& b,
           double beta) override {
    check_add(to, a, b);
    run(queue, [=](const auto& view) { reference::add(view, to, a, alpha, b, beta); });
  }
  void initialize_normal(QueueKind queue, const InitializeNormalArgs& args) override {
    check_initialize_normal(args);
    run(queue, [=](const auto& view) { reference::initialize_normal(view, args); });
  }
  void matmul(QueueKind queue, const MatmulArgs& args) override {
    check_matmul(args);
    require_supported(args.a.data);
    run(queue, [=](const auto& view) { reference::matmul(view, args); });
  }
  void add_column_sums(QueueKind queue, const Tensor& sums, const Tensor& x) override {
    check_add_column_sums(sums, x);
    require_supported(x);
    run(queue, [=](const auto& view) { reference::add_column_sums(view, sums, x); });
  }
  void activation_forward(QueueKind queue, Activation kind, const Tensor& y, const Tensor& x) override {
    check_activation_forward(y, x);
    require_supported(x);
    run(queue, [=](const auto& view) { reference::activation_forward(view, kind, y, x); });
  }
  void activation_backward(QueueKind queue, Activation kind, const Tensor& x_grad, const Tensor& y_grad,
                           const Tensor& x) override {
    check_activation_backward(x_grad, y_grad, x);
    require_supported(x);
    run(queue, [=](const auto& view) { reference::activation_backward(view, kind, x_grad, y_grad, x); });
  }
  void attention_forward(QueueKind queue, const AttentionArgs& args) override {
    check_attention_forward(args);
    require_supported(args.query);
    run(queue, [=](const auto& view) { reference::attention_forward(view, args); });
  }
  void attention_backward(QueueKind queue, const AttentionBackwardArgs& args) override {
    check_attention_backward(args);
    require_supported(args.forward.query);
    run(queue, [=](const auto& view) { reference::attention_backward(view, args); });
  }
  void layer_norm_forward(QueueKind queue, const LayerNormArgs& args) override {
    check_layer_norm_forward(args);
    require_supported(args.x);
    run(queue, [=](const auto& view) { reference::layer_norm_forward(view, args); });
  }
  void layer_norm_backward(QueueKind queue, const LayerNormBackwardArgs& args) override {
    check_layer_norm_backward(args);
    require_supported(args.x);
    run(queue, [=](const auto& view) { reference::layer_norm_backward(view, args); });
  }
  void dropout_add_forward(QueueKind queue, const DropoutAddArgs& args) override {
    check_dropout_add_forward(args);
    require_supported(args.x);
    run(queue, [=](const auto& view) { reference::dropout_add_forward(view, args); });
  }
  void dropout_backward(QueueKind queue, const Tensor& x_grad, const Tensor& y_grad,
                        const DropoutArgs& dropout) override {
    check_dropout_backward(x_grad, y_grad, dropout);
    require_supported(y_grad);
    run(queue, [=](const auto& view) { reference::dropout_backward(view, x_grad, y_grad, dropout); });
  }
  void embedding_forward(QueueKind queue, const EmbeddingArgs& args) override {
    check_embedding_forward(args);
    require_supported(args.table);
    run(queue, [=](const auto& view) { reference::embedding_forward(view, args); });
  }
  void embedding_backward(QueueKind queue, const EmbeddingBackwardArgs& args) override {
    check_embedding_backward(args);
    require_supported(args.rows_grad);
    run(queue, [=](const auto& view) { reference::embedding_backward(view, args); });
  }
  void cross_entropy_forward(QueueKind queue, const CrossEntropyArgs& args) override {
    check_cross_entropy_forward(args);
    require_supported(args.logits);
    run(queue, [=](const auto& view) { reference::cross_entropy_forward(view, args); });
  }
  void cross_entropy_loss(QueueKind queue, const CrossEntropyLossArgs& args) override {
    check_cross_entropy_loss(args);
    run(queue, [=](const auto& view) { reference::cross_entropy_loss(view, args); });
  }
  void cross_entropy_backward(QueueKind queue, const CrossEntropyBackwardArgs& args) override {
    check_cross_entropy_backward(args);
    require_supported(args.logits);
    run(queue, [=](const auto& view) { reference::cross_entropy_backward(view, args); });
  }
  void add_weighted_sum(QueueKind queue, const Tensor& total, const Tensor& x,
                        const Tensor& weights) override {
    check_add_weighted_sum(total, x, weights);
    run(queue, [=](const auto& view) { reference::add_weighted_sum(view, total, x, weights); });
  }
  void block_norms(QueueKind queue, const Tensor& partials, const Tensor& x) override {
    check_block_norms(partials, x);
    run(queue, [=](const auto& view) { reference::block_norms(view, partials, x); });
  }
  void clip_factor(QueueKind queue, const ClipFactorArgs& args) override {
    check_clip_factor(args);
    run(queue, [=](const auto& view) { reference::clip_factor(view, args); });
  }
  void adamw(QueueKind queue, const AdamWArgs& args) override {
    check_adamw(args);
    run(queue, [=](const auto& view) { reference::adamw(view, args); });
  }
  void sgd(QueueKind queue, const SgdArgs& args) override {
    check_sgd(args);
    run(queue, [=](const auto& view) { reference::sgd(view, args); });
  }

 private:
  /// The lambda keeps copies of a kernel's arguments, so it may run at any later time.
  template <typename Kernel>
  void run(QueueKind queue, Kernel kernel) {
    queues_->enqueue(queue, [view = view_, kernel = std::move(kernel)] { kernel(view); });
  }

  void require_supported(const Tensor& activation) const {
    if (supports(activation.dtype)) return;
    fail(ErrorKind::internal, "device reference", "activations are {}; it computes in float32 and float64",
         name_of(activation.dtype));
  }

  bool strict_;
  std::uint64_t strict_seed_;
  std::unique_ptr<reference::Memory> memory_;
  reference::HostView view_;
  std::unique_ptr<reference::Queues> queues_;
};

}  // namespace

std::unique_ptr<Device> make_reference_device(const DeviceOptions& options) {
  return std::make_unique<ReferenceDevice>(options);
}

}  // namespace megalith
