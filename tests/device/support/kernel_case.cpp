#include "tests/device/support/kernel_case.h"

#include <cmath>
#include <cstring>

#include "core/philox.h"

namespace megalith::testing_support {
namespace {

constexpr std::size_t margin = 64;

template <typename T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

template <typename T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

void store(std::byte* at, DType dtype, double value) {
  switch (dtype) {
    case DType::float64:
      return put(at, value);
    case DType::float32:
      return put(at, static_cast<float>(value));
    case DType::bfloat16:
      return put(at, BFloat16(static_cast<float>(value)).bits);
    case DType::float16:
      return put(at, Float16(static_cast<float>(value)).bits);
    case DType::int64:
      return put(at, static_cast<std::int64_t>(value));
    case DType::int32:
      return put(at, static_cast<std::int32_t>(value));
    case DType::uint16:
      return put(at, static_cast<std::uint16_t>(value));
    case DType::uint8:
      return put(at, static_cast<std::uint8_t>(value));
  }
}

double load(const std::byte* at, DType dtype) {
  switch (dtype) {
    case DType::float64:
      return get<double>(at);
    case DType::float32:
      return static_cast<double>(get<float>(at));
    case DType::bfloat16:
      return static_cast<double>(static_cast<float>(get<BFloat16>(at)));
    case DType::float16:
      return static_cast<double>(static_cast<float>(get<Float16>(at)));
    case DType::int64:
      return static_cast<double>(get<std::int64_t>(at));
    case DType::int32:
      return get<std::int32_t>(at);
    case DType::uint16:
      return get<std::uint16_t>(at);
    case DType::uint8:
      return get<std::uint8_t>(at);
  }
  return 0.0;
}

/// Byte offset of element `number` (row-major) of a view from its first element.
std::size_t element_offset(const Tensor& view, std::int64_t number) {
  std::int64_t offset = 0;
  for (int dim = view.shape.rank() - 1; dim >= 0; --dim) {
    offset += number % view.shape[dim] * view.stride(dim);
    number /= view.shape[dim];
  }
  return static_cast<std::size_t>(offset) * size_of(view.dtype);
}

/// A view of `shape` in the front corner of `storage`.
Tensor corner(DeviceAddress start, DType dtype, const Shape& shape, const Shape& storage) {
  if (storage.rank() == 0) return {start, dtype, shape};
  Tensor view(start, dtype, storage);
  view.shape = shape;
  return view;
}

}  // namespace

DType resolve(Element element, DType compute) {
  switch (element) {
    case Element::compute:
      return compute;
    case Element::sum:
      return sum_type(compute);
    case Element::float64:
      return DType::float64;
    case Element::float32:
      return DType::float32;
    case Element::bfloat16:
      return DType::bfloat16;
    case Element::float16:
      return DType::float16;
    case Element::int64:
      return DType::int64;
    case Element::int32:
      return DType::int32;
    case Element::uint16:
      return DType::uint16;
    case Element::uint8:
      return DType::uint8;
  }
  return compute;
}

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return 0x1p-53;
    case DType::float32:
      return 0x1p-24;
    case DType::float16:
      return 0x1p-11;
    case DType::bfloat16:
      return 0x1p-8;
    default:
      return 0.0;
  }
}

double Bound::allowed(double reference, DType output, DType compute) const {
  const double size = std::fabs(reference);
  const double sum = unit_roundoff(sum_type(compute));
  return ulps * unit_roundoff(output) * size + relative * sum * size + terms * sum * magnitude +
         roundings * unit_roundoff(compute) * magnitude;
}

std::vector<double> rounded(std::vector<double> values, DType dtype) {
  std::array<std::byte, 8> place{};
  for (double& value : values) {
    store(place.data(), dtype, value);
    value = load(place.data(), dtype);
  }
  return values;
}

std::vector<double> uniform(const Shape& shape, double low, double high, std::uint64_t seed) {
  std::vector<double> values(static_cast<std::size_t>(shape.count()));
  const PhiloxKey key = philox_key(seed, "uniform");
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t word = philox({static_cast<std::uint32_t>(i / 4), 0, 0, 0}, key)[i % 4];
    values[i] = low + (high - low) * (static_cast<double>(word) + 0.5) * 0x1p-32;
  }
  return values;
}

std::vector<double> integers(const Shape& shape, std::int64_t low, std::int64_t high, std::uint64_t seed) {
  std::vector<double> values = uniform(shape, static_cast<double>(low), static_cast<double>(high), seed);
  for (double& value : values) value = std::floor(value);
  return values;
}

PlacedCase::PlacedCase(const KernelCase& kernel_case, Device& device, DType compute,
                       std::int64_t misalignment)
    : case_(kernel_case), device_(device) {
  for (const Argument& argument : case_.arguments) {
    const DType dtype = resolve(argument.element, compute);
    const Shape& storage = argument.storage.rank() == 0 ? argument.shape : argument.storage;
    Place place;
    place.start = margin + static_cast<std::size_t>(misalignment) * size_of(dtype);
    place.before.assign(place.start + static_cast<std::size_t>(storage.count()) * size_of(dtype) + margin,
                        std::byte{0xff});
    place.memory = DeviceMemory(device, place.before.size());
    const Tensor view = corner(place.memory.address() + static_cast<std::int64_t>(place.start), dtype,
                               argument.shape, argument.storage);
    for (std::size_t i = 0; i < argument.values.size(); ++i) {
      store(place.before.data() + place.start + element_offset(view, static_cast<std::int64_t>(i)), dtype,
            argument.values[i]);
    }
    tensors_.push_back(view);
    places_.push_back(std::move(place));
  }
  for (const Place& place : places_) {
    const Tensor whole(place.memory.address(), DType::uint8,
                       {static_cast<std::int64_t>(place.before.size())});
    device_.copy_to_device(QueueKind::compute, whole, place.before.data());
  }
}

void PlacedCase::enqueue() {
  case_.enqueue(device_, QueueKind::compute, tensors_);
}

void PlacedCase::finish() {
  results_.clear();
  damage_.clear();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Place& place = places_[i];
    const Argument& argument = case_.arguments[i];
    std::vector<std::byte> after(place.before.size());
    const Tensor whole(place.memory.address(), DType::uint8, {static_cast<std::int64_t>(after.size())});
    device_.copy_to_host(QueueKind::compute, after.data(), whole);
    device_.synchronize(QueueKind::compute);
    std::vector<double> values(static_cast<std::size_t>(argument.shape.count()));
    const std::size_t size = size_of(tensors_[i].dtype);
    std::vector<std::byte> expected = place.before;
    for (std::size_t j = 0; j < values.size(); ++j) {
      const std::size_t at = place.start + element_offset(tensors_[i], static_cast<std::int64_t>(j));
      values[j] = load(after.data() + at, tensors_[i].dtype);
      if (argument.use != Use::input) std::memcpy(expected.data() + at, after.data() + at, size);
    }
    results_.push_back(std::move(values));
    for (std::size_t at = 0; at < after.size(); ++at) {
      if (after[at] == expected[at]) continue;
      damage_ +=
          format("{}{} at byte {} of its {}; ", argument.use == Use::input ? "input " : "storage around ",
                 argument.name, static_cast<std::int64_t>(at) - static_cast<std::int64_t>(place.start),
                 argument.shape.to_string());
      break;
    }
  }
}

}  // namespace megalith::testing_support
