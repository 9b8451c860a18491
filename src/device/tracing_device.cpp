#include "device/tracing_device.h"

#include <initializer_list>
#include <utility>

namespace megalith {
namespace {

/// What a kernel's span says about its arguments.
struct Work {
  std::string detail;
  double flops = 0;
  double bytes = 0;
};

double bytes_of(std::initializer_list<Tensor> tensors) {
  double bytes = 0;
  for (const Tensor& tensor : tensors) {
    if (tensor) bytes += static_cast<double>(tensor.bytes());
  }
  return bytes;
}

std::string text_of(const Tensor& tensor) {
  return format("{} {}", name_of(tensor.dtype), tensor.shape.to_string());
}

/// A kernel that is bound by memory: its largest argument, and all it touches.
Work moving(const Tensor& main, std::initializer_list<Tensor> touched) {
  return {text_of(main), 0, bytes_of(touched)};
}

Work matmul_work(const MatmulArgs& args) {
  const auto operand = [](const MatmulOperand& o) { return text_of(o.data) + (o.transposed ? "^T" : ""); };
  const std::int64_t inner = args.a.data.shape[args.a.transposed ? 0 : 1];
  return {format("{} * {} {} {}{}", operand(args.a), operand(args.b), args.accumulate ? "+>" : "->",
                 text_of(args.c), args.bias ? " + bias" : ""),
          2.0 * static_cast<double>(args.c.count()) * static_cast<double>(inner),
          bytes_of({args.a.data, args.b.data, args.c, args.pre_activation})};
}

// Of the score matrix's products: two forward, five backward; a causal mask leaves half.
Work attention_work(const AttentionArgs& args, int products) {
  const Tensor& query = args.query;
  const double scores = static_cast<double>(query.count()) * static_cast<double>(args.key.shape[1]);
  return {
      format("query {}, key {}{}", text_of(query), args.key.shape.to_string(), args.causal ? ", causal" : ""),
      args.block_table ? 0 : 2.0 * products * scores * (args.causal ? 0.5 : 1.0),
      bytes_of({query, args.key, args.value, args.out})};
}

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
        queue, "copy to device", [&] { inner_->copy_to_device(queue, to, host); },
        [&] { return moving(to, {to}); });
  }
  void copy_to_host(QueueKind queue, void* host, const Tensor& from) override {
    run(
        queue, "copy to host", [&] { inner_->copy_to_host(queue, host, from); },
        [&] { return moving(from, {from}); });
  }
  void fill(QueueKind queue, const Tensor& to, double value) override {
    run(queue, "fill", [&] { inner_->fill(queue, to, value); }, [&] { return moving(to, {to}); });
  }
  void copy(QueueKind queue, const Tensor& to, const Tensor& from) override {
    run(queue, "copy", [&] { inner_->copy(queue, to, from); }, [&] { return moving(to, {to, from}); });
  }
  void add(QueueKind queue, const Tensor& to, const Tensor& a, double alpha, const Tensor& b,
           double beta) override {
    run(
        queue, "add", [&] { inner_->add(queue, to, a, alpha, b, beta); },
        [&] { return moving(to, {to, a, b}); });
  }
  void initialize_normal(QueueKind queue, const InitializeNormalArgs& args) override {
    run(
        queue, "initialize normal", [&] { inner_->initialize_normal(queue, args); },
        [&] { return moving(args.to, {args.to}); });
  }
  void matmul(QueueKind queue, const MatmulArgs& args) override {
    run(queue, "matmul", [&] { inner_->matmul(queue, args); }, [&] { return matmul_work(args); });
  }
  void add_column_sums(QueueKind queue, const Tensor& sums, const Tensor& x) override {
    run(
        queue, "add column sums", [&] { inner_->add_column_sums(queue, sums, x); },
        [&] { return moving(x, {x}); });
  }
  void activation_forward(QueueKind queue, Activation kind, const Tensor& y, const Tensor& x) override {
    run(
        queue, "activation forward", [&] { inner_->activation_forward(queue, kind, y, x); },
        [&] { return moving(x, {x, y}); });
  }
  void activation_backward(QueueKind queue, Activation kind, const Tensor& x_grad, const Tensor& y_grad,
                           const Tensor& x) override {
    run(
        queue, "activation backward", [&] { inner_->activation_backward(queue, kind, x_grad, y_grad, x); },
        [&] { return moving(x, {x_grad, y_grad, x}); });
  }
  void attention_forward(QueueKind queue, const AttentionArgs& args) override {
    run(
        queue, "attention forward", [&] { inner_->attention_forward(queue, args); },
        [&] { return attention_work(args, 2); });
  }
  void attention_backward(QueueKind queue, const AttentionBackwardArgs& args) override {
    run(
        queue, "attention backward", [&] { inner_->attention_backward(queue, args); },
        [&] { return attention_work(args.forward, 5); });
  }
  void layer_norm_forward(QueueKind queue, const LayerNormArgs& args) override {
    run(
        queue, "layer norm forward", [&] { inner_->layer_norm_forward(queue, args); },
        [&] { return moving(args.x, {args.x, args.y}); });
  }
  void layer_norm_backward(QueueKind queue, const LayerNormBackwardArgs& args) override {
    run(
        queue, "layer norm backward", [&] { inner_->layer_norm_backward(queue, args); },
        [&] { return moving(args.x, {args.x, args.y_grad, args.residual, args.x_grad}); });
  }
  void dropout_add_forward(QueueKind queue, const DropoutAddArgs& args) override {
    run(
        queue, "dropout add forward", [&] { inner_->dropout_add_forward(queue, args); },
        [&] { return moving(args.x, {args.x, args.residual, args.y}); });
  }
  void dropout_backward(QueueKind queue, const Tensor& x_grad, const Tensor& y_grad,
                        const DropoutArgs& dropout) override {
    run(
        queue, "dropout backward", [&] { inner_->dropout_backward(queue, x_grad, y_grad, dropout); },
        [&] { return moving(y_grad, {x_grad, y_grad}); });
  }
  void embedding_forward(QueueKind queue, const EmbeddingArgs& args) override {
    run(
        queue, "embedding forward", [&] { inner_->embedding_forward(queue, args); },
        [&] { return moving(args.rows, {args.rows, args.rows}); });
  }
  void embedding_backward(QueueKind queue, const EmbeddingBackwardArgs& args) override {
    run(
        queue, "embedding backward", [&] { inner_->embedding_backward(queue, args); },
        [&] { return moving(args.rows_grad, {args.rows_grad, args.rows_grad, args.rows_grad}); });
  }
  void cross_entropy_forward(QueueKind queue, const CrossEntropyArgs& args) override {
    run(
        queue, "cross-entropy forward", [&] { inner_->cross_entropy_forward(queue, args); },
        [&] { return moving(args.logits, {args.logits}); });
  }
  void cross_entropy_loss(QueueKind queue, const CrossEntropyLossArgs& args) override {
    run(
        queue, "cross-entropy loss", [&] { inner_->cross_entropy_loss(queue, args); },
        [&] { return moving(args.losses, {args.row_max, args.row_sum, args.target_logit, args.losses}); });
  }
  void cross_entropy_backward(QueueKind queue, const CrossEntropyBackwardArgs& args) override {
    run(
        queue, "cross-entropy backward", [&] { inner_->cross_entropy_backward(queue, args); },
        [&] { return moving(args.logits, {args.logits, args.logits}); });
  }
  void add_weighted_sum(QueueKind queue, const Tensor& total, const Tensor& x,
                        const Tensor& weights) override {
    run(
        queue, "add weighted sum", [&] { inner_->add_weighted_sum(queue, total, x, weights); },
        [&] { return moving(x, {x, weights}); });
  }
  void block_norms(QueueKind queue, const Tensor& partials, const Tensor& x) override {
    run(
        queue, "block norms", [&] { inner_->block_norms(queue, partials, x); },
        [&] { return moving(x, {x}); });
  }
  void clip_factor(QueueKind queue, const ClipFactorArgs& args) override {
    run(
        queue, "clip factor", [&] { inner_->clip_factor(queue, args); },
        [&] { return moving(args.partials, {args.partials}); });
  }
  void adamw(QueueKind queue, const AdamWArgs& args) override {
    run(
        queue, "adamw", [&] { inner_->adamw(queue, args); },
        [&] {
          return moving(args.weights, {args.weights, args.weights, args.gradient, args.exp_avg, args.exp_avg,
                                       args.exp_avg_sq, args.exp_avg_sq, args.compute_copy});
        });
  }
  void sgd(QueueKind queue, const SgdArgs& args) override {
    run(
        queue, "sgd", [&] { inner_->sgd(queue, args); },
        [&] {
          return moving(args.weights, {args.weights, args.weights, args.gradient, args.momentum_buffer,
                                       args.momentum_buffer, args.compute_copy});
        });
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
    Work work = describe();
    span.name = name;
    span.track = 1 + static_cast<int>(queue);
    span.detail = std::move(work.detail);
    span.flops = work.flops;
    span.bytes = work.bytes;
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
