// The cpu device: host memory, vectorised multi-threaded kernels, oneDNN for some matrix products. Queues run
// their work at once, on the calling thread and the device's team, so events carry no waiting. Calls from
// several threads are safe; kernels of one device take turns.
//
// One kernel, one file: KERNEL.cpp in this folder defines CpuDevice's member functions of that kernel, and
// compiles its loops once per instruction set (Highway chooses at run time). Storage is float32 or bfloat16,
// arithmetic float32.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "device/cpu/scratch.h"
#include "device/device.h"
#include "device/parallel_for.h"

namespace megalith {

class MatmulEngine;

class CpuDevice final : public Device {
 public:
  explicit CpuDevice(const DeviceOptions& options);
  ~CpuDevice() override;

  std::string_view name() const override;
  std::string description() const override;
  bool supports(DType compute) const override;

  DeviceAddress allocate(std::size_t bytes) override;
  void release(DeviceAddress address) override;
  std::size_t allocated_bytes() const override;
  std::size_t peak_bytes() const override;

  Event record(QueueKind queue) override;
  void wait(QueueKind queue, const Event& event) override;
  void synchronize(QueueKind queue) override;
  void copy_to_device(QueueKind queue, const Tensor& to, const void* host) override;
  void copy_to_host(QueueKind queue, void* host, const Tensor& from) override;

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
  /// Held by a kernel that uses scratch_ or matmul_engine_, from before it asks for memory until it is done.
  std::mutex kernel_mutex_;
  ThreadTeam team_;
  Scratch scratch_;
  std::unique_ptr<MatmulEngine> matmul_engine_;

  mutable std::mutex memory_mutex_;
  struct Block {
    AlignedMemory memory;
    std::size_t bytes = 0;
  };
  std::unordered_map<std::uintptr_t, Block> blocks_;  ///< by address
  std::size_t allocated_bytes_ = 0;
  std::size_t peak_bytes_ = 0;
};

/// Opens the cpu device with options.threads threads (0: all processors this process may use).
std::unique_ptr<Device> make_cpu_device(const DeviceOptions& options);

/// The host memory behind an address of the cpu device: pointer_to<float>(tensor).
template <typename T>
T* pointer_to(const Tensor& tensor) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the cpu device's addresses are host addresses.
  return reinterpret_cast<T*>(tensor.address.value);
}

}  // namespace megalith
