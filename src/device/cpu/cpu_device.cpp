#include "device/cpu/cpu_device.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "device/check.h"
#include "device/cpu/instruction_set.h"
#include "device/cpu/matmul_engine.h"

namespace megalith {

CpuDevice::CpuDevice(const DeviceOptions& options)
    : team_(options.threads > 0 ? options.threads : usable_processors()),
      matmul_engine_(make_onednn_matmul(team_)) {
  if (!matmul_engine_) matmul_engine_ = make_blocked_matmul(team_);
}

CpuDevice::~CpuDevice() = default;

std::string_view CpuDevice::name() const {
  return "cpu";
}

std::string CpuDevice::description() const {
  return format("cpu: {}, {} thread{}, matmul by {}", instruction_set(), team_.threads(),
                team_.threads() == 1 ? "" : "s", matmul_engine_->description());
}

bool CpuDevice::supports(DType compute) const {
  return compute == DType::float32 || compute == DType::bfloat16;
}

DeviceAddress CpuDevice::allocate(std::size_t bytes) {
  AlignedMemory block = allocate_aligned(bytes);
  const std::lock_guard lock(memory_mutex_);
  const DeviceAddress address{reinterpret_cast<std::uintptr_t>(block.get())};
  blocks_.emplace(address.value, Block{std::move(block), bytes});
  allocated_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, allocated_bytes_);
  return address;
}

void CpuDevice::release(DeviceAddress address) {
  const std::lock_guard lock(memory_mutex_);
  const auto found = blocks_.find(address.value);
  MEGALITH_ASSERT(found != blocks_.end(), "released a block that the cpu device did not allocate");
  allocated_bytes_ -= found->second.bytes;
  blocks_.erase(found);
}

std::size_t CpuDevice::allocated_bytes() const {
  const std::lock_guard lock(memory_mutex_);
  return allocated_bytes_;
}

std::size_t CpuDevice::peak_bytes() const {
  const std::lock_guard lock(memory_mutex_);
  return peak_bytes_;
}

// Work is done when a call returns, so every event has passed already.
Event CpuDevice::record(QueueKind queue) {
  return {queue, 0};
}
void CpuDevice::wait(QueueKind, const Event&) {}
void CpuDevice::synchronize(QueueKind) {}

void CpuDevice::copy_to_device(QueueKind, const Tensor& to, const void* host) {
  check_copy_to_device(to, host);
  if (to.bytes() > 0) std::memcpy(pointer_to<std::byte>(to), host, to.bytes());
}

void CpuDevice::copy_to_host(QueueKind, void* host, const Tensor& from) {
  check_copy_to_host(host, from);
  if (from.bytes() > 0) std::memcpy(host, pointer_to<std::byte>(from), from.bytes());
}

std::unique_ptr<Device> make_cpu_device(const DeviceOptions& options) {
  return std::make_unique<CpuDevice>(options);
}

}  // namespace megalith
