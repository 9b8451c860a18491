#include "device/tracing_device.h"

#include <utility>

#include "device/kernel_work.h"

namespace megalith {
namespace {

class TracingDevice : public Device {
 public:
  TracingDevice(std::unique_ptr<Device> inner, Trace& trace) : inner_(std::move(inner)), trace_(trace) {}

  std::string_view name() const override { return inner_->name(); }
  std::string description() const override { return inner_->description(); }
  bool supports(DType compute) const override { return inner_->supports(compute); }
  DeviceAddress allocate(std::size_t bytes) override { return inner_->allocate(bytes); }
  void release(DeviceAddress address) override { inner_->release(address); }
  std::size_t allocated_bytes() const override { return inner_->allocated_bytes(); }
  std::size_t peak_bytes() const override { return inner_->peak_bytes(); }
  Event record(QueueKind queue) override { return inner_->record(queue); }
  void wait(QueueKind queue, const Event& event) override { inner_->wait(queue, event); }
  void synchronize(QueueKind queue) override { inner_->synchronize(queue); }

  void begin_region(std::string_view name, std::int64_t number) override {
    trace_.begin_region(number < 0 ? std::string(name) : format("{} {}", name, number));
  }
  void end_region() override { trace_.end_region(); }

  void copy_to_device(QueueKind queue, const Tensor& to, const void* host) override {
    run(
        queue, "copy_to_device", [&] { inner_->copy_to_device(queue, to, host); },
        [&] { return kernel_work::copy_to_device(to); });
  }
  void copy_to_host(QueueKind queue, void* host, const Tensor& from) override {
    run(
        queue, "copy_to_host", [&] { inner_->copy_to_host(queue, host, from); },
        [&] { return kernel_work::copy_to_host(from); });
  }
  void fill(QueueKind queue, const Tensor& to, double value) override {
    run(queue, "fill", [&] { inner_->fill(queue, to, value); }, [&] { return kernel_work::fill(to); });
  }
  void copy(QueueKind queue, const Tensor& to, const Tensor& from) override {
    run(queue, "copy", [&] { inner_->copy(queue, to, from); }, [&] { return kernel_work::copy(to, from); });
  }
  void add(QueueKind queue, const Tensor& to, const Tensor& a, double alpha, const Tensor& b,
           double beta) override {
    run(
        queue, "add", [&] { inner_->add(queue, to, a, alpha, b, beta); },
        [&] { return kernel_work::add(to, a, b); });
  }
  void initialize_normal(QueueKind queue, const InitializeNormalArgs& args) override {
    run(
        queue, "initialize_normal", [&] { inner_->initialize_normal(queue, args); },
        [&] { return kernel_work::initialize_normal(args); });
  }
  void matmul(QueueKind queue, const MatmulArgs& args) override {
    run(queue, "matmul", [&] { inner_->matmul(queue, args); }, [&] { return kernel_work::matmul(args); });
  }
  void add_column_sums(QueueKind queue, const Tensor& sums, const Tensor& x) override {
    run(
        queue, "add_column_sums", [&] { inner_->add_column_sums(queue, sums, x); },
        [&] { return kernel_work::add_column_sums(sums, x); });
  }
  void activation_forward(QueueKind queue, Activation kind, const Tensor& y, const Tensor& x) override {
    run(
        queue, "activation_forward", [&] { inner_->activation_forward(queue, kind, y, x); },
        [&] { return kernel_work::activation_forward(y, x); });
  }
  void activation_backward(QueueKind queue, Activation kind, const Tensor& x_grad, const Tensor& y_grad,
                           const Tensor& x) override {
    run(
        queue, "activation_backward", [&] { inner_->activation_backward(queue, kind, x_grad, y_grad, x); },
        [&] { return kernel_work::activation_backward(x_grad, y_grad, x); });
  }
  void attention_forward(QueueKind queue, const AttentionArgs& args) override {
    run(
        queue, "attention_forward", [&] { inner_->attention_forward(queue, args); },
        [&] { return kernel_work::attention_forward(args); });
  }
  void attention_backward(QueueKind queue, const AttentionBackwardArgs& args) override {
    run(
        queue, "attention_backward", [&] { inner_->attention_backward(queue, args); },
        [&] { return kernel_work::attention_backward(args); });
  }
  void layer_norm_forward(QueueKind queue, const LayerNormArgs& args) override {
    run(
        queue, "layer_norm_forward", [&] { inner_->layer_norm_forward(queue, args); },
        [&] { return kernel_work::layer_norm_forward(args); });
  }
  void layer_norm_backward(QueueKind queue, const LayerNormBackwardArgs& args) override {
    run(
        queue, "layer_norm_backward", [&] { inner_->layer_norm_backward(queue, args); },
        [&] { return kernel_work::layer_norm_backward(args); });
  }
  void dropout_add_forward(QueueKind queue, const DropoutAddArgs& args) override {
    run(
        queue, "dropout_add_forward", [&] { inner_->dropout_add_forward(queue, args); },
        [&] { return kernel_work::dropout_add_forward(args); });
  }
  void dropout_backward(QueueKind queue, const Tensor& x_grad, const Tensor& y_grad,
                        const DropoutArgs& dropout) override {
    run(
        queue, "dropout_backward", [&] { inner_->dropout_backward(queue, x_grad, y_grad, dropout); },
        [&] { return kernel_work::dropout_backward(x_grad, y_grad); });
  }
  void embedding_forward(QueueKind queue, const EmbeddingArgs& args) override {
    run(
        queue, "embedding_forward", [&] { inner_->embedding_forward(queue, args); },
        [&] { return kernel_work::embedding_forward(args); });
  }
  void embedding_backward(QueueKind queue, const EmbeddingBackwardArgs& args) override {
    run(
        queue, "embedding_backward", [&] { inner_->embedding_backward(queue, args); },
        [&] { return kernel_work::embedding_backward(args); });
  }
  void cross_entropy_forward(QueueKind queue, const CrossEntropyArgs& args) override {
    run(
        queue, "cross_entropy_forward", [&] { inner_->cross_entropy_forward(queue, args); },
        [&] { return kernel_work::cross_entropy_forward(args); });
  }
  void cross_entropy_loss(QueueKind queue, const CrossEntropyLossArgs& args) override {
    run(
        queue, "cross_entropy_loss", [&] { inner_->cross_entropy_loss(queue, args); },
        [&] { return kernel_work::cross_entropy_loss(args); });
  }
  void cross_entropy_backward(QueueKind queue, const CrossEntropyBackwardArgs& args) override {
    run(
        queue, "cross_entropy_backward", [&] { inner_->cross_entropy_backward(queue, args); },
        [&] { return kernel_work::cross_entropy_backward(args); });
  }
  void add_weighted_sum(QueueKind queue, const Tensor& total, const Tensor& x,
                        const Tensor& weights) override {
    run(
        queue, "add_weighted_sum", [&] { inner_->add_weighted_sum(queue, total, x, weights); },
        [&] { return kernel_work::add_weighted_sum(x, weights); });
  }
  void block_norms(QueueKind queue, const Tensor& partials, const Tensor& x) override {
    run(
        queue, "block_norms", [&] { inner_->block_norms(queue, partials, x); },
        [&] { return kernel_work::block_norms(partials, x); });
  }
  void clip_factor(QueueKind queue, const ClipFactorArgs& args) override {
    run(
        queue, "clip_factor", [&] { inner_->clip_factor(queue, args); },
        [&] { return kernel_work::clip_factor(args); });
  }
  void adamw(QueueKind queue, const AdamWArgs& args) override {
    run(queue, "adamw", [&] { inner_->adamw(queue, args); }, [&] { return kernel_work::adamw(args); });
  }
  void sgd(QueueKind queue, const SgdArgs& args) override {
    run(queue, "sgd", [&] { inner_->sgd(queue, args); }, [&] { return kernel_work::sgd(args); });
  }

 private:
  template <typename Call, typename Describe>
  void run(QueueKind queue, const char* name, const Call& call, const Describe& describe) {
    if (!trace_.is_recording()) return call();
    inner_->synchronize(queue);
    TraceSpan span;
    span.begin_ns = Trace::now();
    call();
    inner_->synchronize(queue);
    span.end_ns = Trace::now();
    KernelWork work = describe();
    span.name = name;
    span.track = 1 + static_cast<int>(queue);
    span.detail = std::move(work.shape);
    span.flops = work.flops;
    span.bytes_read = work.bytes_read;
    span.bytes_written = work.bytes_written;
    trace_.add(std::move(span));
  }

  std::unique_ptr<Device> inner_;
  Trace& trace_;
};

}  // namespace

Trace make_device_trace() {
  return Trace({"compute queue", "communication queue", "copy queue"});
}

std::unique_ptr<Device> make_tracing_device(std::unique_ptr<Device> device, Trace& trace) {
  return std::make_unique<TracingDevice>(std::move(device), trace);
}

}  // namespace megalith
