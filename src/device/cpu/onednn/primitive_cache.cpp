#include "device/cpu/onednn/primitive_cache.h"

#include <omp.h>

#include <algorithm>
#include <bit>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "device/cpu/cpu_device.h"
#include "device/cpu/onednn/onednn_version.h"

namespace megalith {

namespace {

dnnl::memory::data_type type_of(DType dtype) {
  return dtype == DType::bfloat16 ? dnnl::memory::data_type::bf16 : dnnl::memory::data_type::f32;
}

dnnl::memory::desc description_of(const Tensor& matrix, bool transposed) {
  const std::int64_t step = leading_step(matrix);
  if (transposed) {
    return {{matrix.shape[1], matrix.shape[0]}, type_of(matrix.dtype), dnnl::memory::dims{1, step}};
  }
  return {{matrix.shape[0], matrix.shape[1]}, type_of(matrix.dtype), dnnl::memory::dims{step, 1}};
}

const Tensor& output_of(const MatmulArgs& args) {
  return args.pre_activation ? args.pre_activation : args.c;
}

/// Activation that the primitive itself applies.
Activation fused_activation(const MatmulArgs& args) {
  return args.pre_activation ? Activation::none : args.activation;
}

}  // namespace

PrimitiveCache::PrimitiveCache() : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {}

PrimitiveCache::Entry PrimitiveCache::create(const MatmulArgs& args) const {
  Entry entry;
  entry.a = description_of(args.a.data, args.a.transposed);
  entry.b = description_of(args.b.data, args.b.transposed);
  entry.c = description_of(output_of(args), false);
  if (args.bias) {
    entry.bias = dnnl::memory::desc({1, args.bias.shape[0]}, type_of(args.bias.dtype),
                                    dnnl::memory::dims{args.bias.shape[0], 1});
  }
  dnnl::post_ops operations;
  // The bias is added before post-operations, so a factor other than 1 cannot be fused beside it.
  if (args.alpha != 1.0) {
    if (args.bias) return entry;
    onednn::append_eltwise(operations, dnnl::algorithm::eltwise_linear, static_cast<float>(args.alpha), 0.0F);
  }
  if (args.accumulate) operations.append_sum(1.0F);
  if (fused_activation(args) == Activation::gelu_tanh) {
    onednn::append_eltwise(operations, dnnl::algorithm::eltwise_gelu_tanh, 0.0F, 0.0F);
  } else if (fused_activation(args) == Activation::gelu_erf) {
    onednn::append_eltwise(operations, dnnl::algorithm::eltwise_gelu_erf, 0.0F, 0.0F);
  }
  dnnl::primitive_attr attributes;
  attributes.set_post_ops(operations);
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const auto description = onednn::matmul_description(engine_, entry.a, entry.b,
                                                      args.bias ? &entry.bias : nullptr, entry.c, attributes);
  if (!description) return entry;
  if (std::string_view(description.impl_info_str()).starts_with("ref")) return entry;
  entry.scratchpad = description.scratchpad_desc();
  entry.primitive = dnnl::matmul(description);
  entry.usable = true;
  return entry;
}

PrimitiveCache::Entry& PrimitiveCache::find(const MatmulArgs& args) {
  const Tensor& c = output_of(args);
  const Key key{args.a.data.shape[0],
                args.a.data.shape[1],
                args.b.data.shape[0],
                args.b.data.shape[1],
                leading_step(args.a.data),
                leading_step(args.b.data),
                leading_step(c),
                args.a.transposed,
                args.b.transposed,
                args.accumulate,
                static_cast<std::int64_t>(fused_activation(args)),
                static_cast<std::int64_t>(args.a.data.dtype),
                static_cast<std::int64_t>(c.dtype),
                args.bias ? 1 + static_cast<std::int64_t>(args.bias.dtype) : 0,
                std::bit_cast<std::int64_t>(args.alpha),
                omp_get_max_threads()};
  auto found = entries_.find(key);
  if (found == entries_.end()) {
    if (entries_.size() >= most_entries) {
      entries_.erase(std::min_element(
          entries_.begin(), entries_.end(),
          [](const auto& left, const auto& right) { return left.second.last_use < right.second.last_use; }));
    }
    found = entries_.emplace(key, create(args)).first;
  }
  found->second.last_use = ++uses_;
  return found->second;
}

bool PrimitiveCache::run(const MatmulArgs& args) {
  try {
    Entry& entry = find(args);
    if (!entry.usable) return false;
    const auto memory = [&](const dnnl::memory::desc& description, const Tensor& tensor) {
      return dnnl::memory(description, engine_, pointer_to<void>(tensor));
    };
    std::unordered_map<int, dnnl::memory> arguments{{DNNL_ARG_SRC, memory(entry.a, args.a.data)},
                                                    {DNNL_ARG_WEIGHTS, memory(entry.b, args.b.data)},
                                                    {DNNL_ARG_DST, memory(entry.c, output_of(args))}};
    if (args.bias) arguments.emplace(DNNL_ARG_BIAS, memory(entry.bias, args.bias));
    if (entry.scratchpad.get_size() > 0) {
      std::byte* block = scratch_.get(0, entry.scratchpad.get_size());
      arguments.emplace(DNNL_ARG_SCRATCHPAD, dnnl::memory(entry.scratchpad, engine_, block));
    }
    entry.primitive.execute(stream_, arguments);
    stream_.wait();
    return true;
  } catch (const dnnl::error& error) {
    fail(ErrorKind::internal, "cpu device", "oneDNN refused a matrix product of {} by {}: {}",
         args.a.data.shape.to_string(), args.b.data.shape.to_string(), error.what());
  }
}

}  // namespace megalith
