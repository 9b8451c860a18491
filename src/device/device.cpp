#include "device/device.h"

#include <utility>

namespace megalith {

DeviceMemory::DeviceMemory(Device& device, std::size_t bytes)
    : device_(&device), address_(device.allocate(bytes)), bytes_(bytes) {}

DeviceMemory::~DeviceMemory() {
  if (device_ != nullptr) device_->release(address_);
}

DeviceMemory::DeviceMemory(DeviceMemory&& other) noexcept
    : device_(std::exchange(other.device_, nullptr)),
      address_(std::exchange(other.address_, {})),
      bytes_(std::exchange(other.bytes_, 0)) {}

DeviceMemory& DeviceMemory::operator=(DeviceMemory&& other) noexcept {
  std::swap(device_, other.device_);
  std::swap(address_, other.address_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Tensor DeviceMemory::tensor(DType dtype, const Shape& shape, std::size_t byte_offset) const {
  const Tensor view(address_ + static_cast<std::int64_t>(byte_offset), dtype, shape);
  MEGALITH_ASSERT(
      byte_offset + view.bytes() <= bytes_,
      format("{} of {} at byte {} in {} bytes", shape.to_string(), name_of(dtype), byte_offset, bytes_));
  return view;
}

}  // namespace megalith
