// The places where oneDNN's versions 2 and 3 differ, so that no other file asks for the version.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace megalith::onednn {

inline void append_eltwise(dnnl::post_ops& operations, dnnl::algorithm algorithm, float alpha, float beta) {
#if DNNL_VERSION_MAJOR >= 3
  operations.append_eltwise(algorithm, alpha, beta);
#else
  operations.append_eltwise(1.0F, algorithm, alpha, beta);
#endif
}

/// The description of a product; an empty `bias` means none. `found` is false where oneDNN has no
/// implementation.
inline dnnl::matmul::primitive_desc matmul_description(
    const dnnl::engine& engine, const dnnl::memory::desc& a, const dnnl::memory::desc& b,
    const dnnl::memory::desc* bias, const dnnl::memory::desc& c, const dnnl::primitive_attr& attributes) {
  constexpr bool allow_empty = true;
#if DNNL_VERSION_MAJOR >= 3
  if (bias != nullptr) return {engine, a, b, *bias, c, attributes, allow_empty};
  return {engine, a, b, c, attributes, allow_empty};
#else
  if (bias != nullptr) return {{a, b, *bias, c}, attributes, engine, allow_empty};
  return {{a, b, c}, attributes, engine, allow_empty};
#endif
}

}  // namespace megalith::onednn
