#include "checkpoint/convert.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/error.h"

namespace megalith {
namespace {

constexpr std::int64_t chunk_bytes = std::int64_t{32} << 20;

bool is_convertible_float(DType dtype) {
  return dtype == DType::float64 || dtype == DType::float32 || dtype == DType::bfloat16;
}

double load_float(const std::byte* from, DType dtype) {
  if (dtype == DType::float64) {
    double value = 0;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  if (dtype == DType::float32) {
    float value = 0;
    std::memcpy(&value, from, sizeof value);
    return value;
  }
  BFloat16 value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<double>(static_cast<float>(value));
}

void store_float(std::byte* to, DType dtype, double value) {
  if (dtype == DType::float64) {
    std::memcpy(to, &value, sizeof value);
  } else if (dtype == DType::float32) {
    const auto narrow = static_cast<float>(value);
    std::memcpy(to, &narrow, sizeof narrow);
  } else {
    const BFloat16 narrow(static_cast<float>(value));
    std::memcpy(to, &narrow, sizeof narrow);
  }
}

void convert_run(std::byte* to, DType to_type, const std::byte* from, DType from_type, std::int64_t count) {
  if (to_type == from_type) {
    std::memcpy(to, from, static_cast<std::size_t>(count) * size_of(to_type));
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    store_float(to + static_cast<std::size_t>(i) * size_of(to_type), to_type,
                load_float(from + static_cast<std::size_t>(i) * size_of(from_type), from_type));
  }
}

// Rows [begin, end) of copy.wanted's first dimension, gathered and converted into `host`.
void gather_rows(const BoxCopy& copy, std::int64_t begin, std::int64_t end, DType to_type,
                 std::vector<std::byte>& host) {
  const int rank = copy.wanted.extent.rank();
  const std::int64_t run = copy.wanted.extent[rank - 1];
  std::array<std::int64_t, Shape::max_rank> strides{};
  std::int64_t stride = 1;
  for (int dim = rank - 1; dim >= 0; --dim) {
    strides[static_cast<std::size_t>(dim)] = stride;
    stride *= copy.slice.extent[dim];
  }
  std::array<std::int64_t, Shape::max_rank> index{};
  index[0] = rank > 1 ? begin : 0;
  const std::int64_t first_column = rank == 1 ? begin : 0;
  const std::int64_t columns = rank == 1 ? end - begin : run;
  std::byte* to = host.data();
  while (true) {
    std::int64_t element = first_column;
    for (int dim = 0; dim < rank; ++dim) {
      const auto d = static_cast<std::size_t>(dim);
      element +=
          (copy.wanted.offset[d] - copy.slice.offset[d] + (dim < rank - 1 ? index[d] : 0)) * strides[d];
    }
    convert_run(to, to_type, copy.stored.data() + static_cast<std::size_t>(element) * size_of(copy.dtype),
                copy.dtype, columns);
    to += static_cast<std::size_t>(columns) * size_of(to_type);
    int dim = rank - 2;
    for (; dim >= 0; --dim) {
      const std::int64_t limit = dim == 0 ? end : copy.wanted.extent[dim];
      if (++index[static_cast<std::size_t>(dim)] < limit) break;
      index[static_cast<std::size_t>(dim)] = 0;
    }
    if (dim < 0) return;
  }
}

}  // namespace

void copy_box_to_device(Device& device, const BoxCopy& copy, const Tensor& local, const Box& target) {
  if (copy.dtype != local.dtype && !(is_convertible_float(copy.dtype) && is_convertible_float(local.dtype))) {
    fail(ErrorKind::input, "checkpoint", "elements of type {} cannot become {}", name_of(copy.dtype),
         name_of(local.dtype));
  }
  if (copy.wanted.count() == 0) return;
  BoxCopy flat = copy;
  Tensor whole = local;
  Box place = target;
  if (copy.wanted.extent.rank() == 0) {
    // A scalar is a vector of one element.
    flat.slice.extent = {1};
    flat.wanted.extent = {1};
    place.extent = {1};
    whole = local.reshaped({1});
  }
  const Tensor view = view_of_box(whole, place);
  const std::int64_t rows = flat.wanted.extent[0];
  const std::int64_t row_bytes = flat.wanted.count() / rows * static_cast<std::int64_t>(size_of(local.dtype));
  const std::int64_t step = std::max<std::int64_t>(1, chunk_bytes / std::max<std::int64_t>(1, row_bytes));
  std::vector<std::byte> host;
  DeviceMemory staging;
  for (std::int64_t row = 0; row < rows; row += step) {
    const std::int64_t end = std::min(rows, row + step);
    host.resize(static_cast<std::size_t>((end - row) * row_bytes));
    gather_rows(flat, row, end, local.dtype, host);
    const Tensor part = view.sliced(0, row, end);
    if (part.is_contiguous()) {
      device.copy_to_device(QueueKind::compute, part, host.data());
    } else {
      if (staging.bytes() < part.bytes()) staging = DeviceMemory(device, part.bytes());
      const Tensor contiguous = staging.tensor(part.dtype, part.shape);
      device.copy_to_device(QueueKind::compute, contiguous, host.data());
      device.copy(QueueKind::compute, part, contiguous);
    }
    device.synchronize(QueueKind::compute);
  }
}

}  // namespace megalith
