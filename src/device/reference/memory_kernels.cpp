// fill, copy, add and the copies from and to the host.
#include <cstring>

#include "device/reference/elements.h"
#include "device/reference/kernels.h"

namespace megalith::reference {
namespace {

template <typename T>
void fill_with(const HostView& view, const Tensor& to, T value) {
  T* out = view.pointer<T>(to);
  for_each_row(std::array{&to}, [&](const auto& offsets) {
    for (std::int64_t i = 0; i < row_length(to); ++i) out[offsets[0] + i] = value;
  });
}

}  // namespace

void copy_to_device(const HostView& view, const Tensor& to, const void* host) {
  if (to.count() > 0) std::memcpy(view.pointer<std::byte>(to), host, to.bytes());
}

void copy_to_host(const HostView& view, void* host, const Tensor& from) {
  if (from.count() > 0) std::memcpy(host, view.pointer<std::byte>(from), from.bytes());
}

void fill(const HostView& view, const Tensor& to, double value) {
  switch (to.dtype) {
    case DType::int64:
      return fill_with(view, to, from_double<std::int64_t>(value));
    case DType::int32:
      return fill_with(view, to, from_double<std::int32_t>(value));
    case DType::uint16:
      return fill_with(view, to, from_double<std::uint16_t>(value));
    case DType::uint8:
      return fill_with(view, to, from_double<std::uint8_t>(value));
    default:
      with_float_type(to.dtype, [&](auto type) {
        using T = typename decltype(type)::type;
        fill_with(view, to, from_double<T>(value));
      });
  }
}

void copy(const HostView& view, const Tensor& to, const Tensor& from) {
  const std::int64_t length = row_length(to);
  if (to.dtype == from.dtype) {
    const auto size = static_cast<std::int64_t>(size_of(to.dtype));
    for_each_row(std::array{&to, &from}, [&](const auto& offsets) {
      std::memcpy(view.pointer<std::byte>(to) + offsets[0] * size,
                  view.pointer<std::byte>(from) + offsets[1] * size, static_cast<std::size_t>(length * size));
    });
    return;
  }
  with_float_type(to.dtype, [&](auto to_type) {
    with_float_type(from.dtype, [&](auto from_type) {
      using To = typename decltype(to_type)::type;
      using From = typename decltype(from_type)::type;
      To* out = view.pointer<To>(to);
      const From* in = view.pointer<From>(from);
      for_each_row(std::array{&to, &from}, [&](const auto& offsets) {
        for (std::int64_t i = 0; i < length; ++i) {
          out[offsets[0] + i] = from_double<To>(to_double(in[offsets[1] + i]));
        }
      });
    });
  });
}

void add(const HostView& view, const Tensor& to, const Tensor& a, double alpha, const Tensor& b,
         double beta) {
  with_float_type(to.dtype, [&](auto to_type) {
    with_float_type(a.dtype, [&](auto a_type) {
      with_float_type(b.dtype, [&](auto b_type) {
        using To = typename decltype(to_type)::type;
        To* out = view.pointer<To>(to);
        const auto* left = view.pointer<typename decltype(a_type)::type>(a);
        const auto* right = view.pointer<typename decltype(b_type)::type>(b);
        for (std::int64_t i = 0; i < to.count(); ++i) {
          out[i] = from_double<To>(alpha * to_double(left[i]) + beta * to_double(right[i]));
        }
      });
    });
  });
}

}  // namespace megalith::reference
