// ObservedDevice: a device that hands everything to another one, waits after each kernel, and reports how
// long it took. What runs on it computes the same; only its kernels no longer overlap.
#pragma once

#include <functional>
#include <string_view>

#include "device/device.h"
#include "device/kernel_work.h"

namespace megalith {

/// One call of one kernel. Times are seconds of a steady clock.
struct KernelCall {
  std::string_view kernel;  ///< name of the member function of Device
  DType dtype = DType::float32;
  KernelWork work;
  double begin = 0.0;
  double end = 0.0;

  double seconds() const { return end - begin; }
};

class ObservedDevice final : public Device {
 public:
  using Observer = std::function<void(const KernelCall& call)>;

  /// `inner` outlives this device. Without an observer kernels are passed on as they are.
  explicit ObservedDevice(Device& inner) : inner_(inner) {}
  void observe(Observer observer) { observer_ = std::move(observer); }

  std::string_view name() const override { return inner_.name(); }
  std::string description() const override { return inner_.description(); }
  bool supports(DType compute) const override { return inner_.supports(compute); }

  DeviceAddress allocate(std::size_t bytes) override { return inner_.allocate(bytes); }
  void release(DeviceAddress address) override { inner_.release(address); }
  std::size_t allocated_bytes() const override { return inner_.allocated_bytes(); }
  std::size_t peak_bytes() const override { return inner_.peak_bytes(); }

  Event record(QueueKind queue) override { return inner_.record(queue); }
  void wait(QueueKind queue, const Event& event) override { inner_.wait(queue, event); }
  void synchronize(QueueKind queue) override { inner_.synchronize(queue); }
  void copy_to_device(QueueKind queue, const Tensor& to, const void* host) override {
    inner_.copy_to_device(queue, to, host);
  }
  void copy_to_host(QueueKind queue, void* host, const Tensor& from) override {
    inner_.copy_to_host(queue, host, from);
  }

  void fill(QueueKind queue, const Tensor& to, double value) override;
  void copy(QueueKind queue, const Tensor& to, const Tensor& from) override;
  void add(QueueKind queue, const Tensor& to, const Tensor& a, double alpha, const Tensor& b,
           double beta) override;
  void initialize_normal(QueueKind queue, const InitializeNormalArgs& args) override;
  void matmul(QueueKind queue, const MatmulArgs& args) override;
  void add_column_sums(QueueKind queue, const Tensor& sums, const Tensor& x) override;
  void activation_forward(QueueKind queue, Activation kind, const Tensor& y, const Tensor& x) override;
  void activation_backward(QueueKind queue, Activation kind, const Tensor& x_grad, const Tensor& y_grad,
                           const Tensor& x) override;
  void attention_forward(QueueKind queue, const AttentionArgs& args) override;
  void attention_backward(QueueKind queue, const AttentionBackwardArgs& args) override;
  void layer_norm_forward(QueueKind queue, const LayerNormArgs& args) override;
  void layer_norm_backward(QueueKind queue, const LayerNormBackwardArgs& args) override;
  void dropout_add_forward(QueueKind queue, const DropoutAddArgs& args) override;
  void dropout_backward(QueueKind queue, const Tensor& x_grad, const Tensor& y_grad,
                        const DropoutArgs& dropout) override;
  void embedding_forward(QueueKind queue, const EmbeddingArgs& args) override;
  void embedding_backward(QueueKind queue, const EmbeddingBackwardArgs& args) override;
  void cross_entropy_forward(QueueKind queue, const CrossEntropyArgs& args) override;
  void cross_entropy_loss(QueueKind queue, const CrossEntropyLossArgs& args) override;
  void cross_entropy_backward(QueueKind queue, const CrossEntropyBackwardArgs& args) override;
  void add_weighted_sum(QueueKind queue, const Tensor& total, const Tensor& x,
                        const Tensor& weights) override;
  void block_norms(QueueKind queue, const Tensor& partials, const Tensor& x) override;
  void clip_factor(QueueKind queue, const ClipFactorArgs& args) override;
  void adamw(QueueKind queue, const AdamWArgs& args) override;
  void sgd(QueueKind queue, const SgdArgs& args) override;

 private:
  template <typename Enqueue, typename Work>
  void run(QueueKind queue, std::string_view kernel, DType dtype, const Work& work, const Enqueue& enqueue);

  Device& inner_;
  Observer observer_;
};

}  // namespace megalith
