// Scaled dot-product attention (Vaswani et al. 2017), one query at a time.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "device/reference/attention_layout.h"
#include "device/reference/dropout_mask.h"
#include "device/reference/elements.h"
#include "device/reference/kernels.h"

namespace megalith::reference {
namespace {

template <typename T>
double dot(const T* a, const T* b, std::int64_t count) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < count; ++i) sum += to_double(a[i]) * to_double(b[i]);
  return sum;
}

template <typename T>
void add_scaled(double* sums, double factor, const T* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) sums[i] += factor * to_double(values[i]);
}

template <typename T>
void store(T* out, const double* values, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = from_double<T>(values[i]);
}

/// Calls body(sequence, head, query) for all of them.
template <typename Body>
void for_each_query(const Tensor& query, const Body& body) {
  for (std::int64_t sequence = 0; sequence < query.shape[0]; ++sequence) {
    for (std::int64_t head = 0; head < query.shape[2]; ++head) {
      for (std::int64_t row = 0; row < query.shape[1]; ++row) body(sequence, head, row);
    }
  }
}

template <typename T>
void forward(const HostView& view, const AttentionArgs& args) {
  const std::int64_t size = args.query.shape[3];
  const std::int64_t heads_per_group = args.query.shape[2] / args.key.shape[2];
  const AttentionLayout layout(view, args);
  const DropoutMask mask(view, args.dropout);
  const T* key = view.pointer<T>(args.key);
  const T* value = view.pointer<T>(args.value);
  T* log_sum_exp = view.pointer<T>(args.log_sum_exp);
  std::vector<double> weights;
  std::vector<double> factors;
  std::vector<double> sums(static_cast<std::size_t>(size));
  for_each_query(args.query, [&](std::int64_t sequence, std::int64_t head, std::int64_t row) {
    const KeyRange keys = layout.keys_of(sequence, row);
    const std::int64_t group = head / heads_per_group;
    const T* query = view.pointer<T>(args.query) + head_offset(args.query, sequence, row, head);
    weights.resize(static_cast<std::size_t>(keys.count()));
    factors.resize(weights.size());
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t j = 0; j < weights.size(); ++j) {
      const std::int64_t position = keys.first + static_cast<std::int64_t>(j);
      weights[j] = args.scale * dot(query, key + layout.offset(args.key, sequence, position, group), size);
      if (weights[j] > largest || std::isnan(weights[j])) largest = weights[j];
    }
    double total = 0.0;
    for (double& weight : weights) {
      weight = std::exp(weight - largest);
      total += weight;
    }
    mask.row_factors(sequence, head, row, keys.first, factors);
    std::fill(sums.begin(), sums.end(), 0.0);
    for (std::size_t j = 0; j < weights.size(); ++j) {
      if (factors[j] == 0.0) continue;
      const std::int64_t position = keys.first + static_cast<std::int64_t>(j);
      add_scaled(sums.data(), weights[j] / total * factors[j],
                 value + layout.offset(args.value, sequence, position, group), size);
    }
    store(view.pointer<T>(args.out) + head_offset(args.out, sequence, row, head), sums.data(), size);
    log_sum_exp[(sequence * args.query.shape[2] + head) * args.query.shape[1] + row] =
        from_double<T>(weights.empty() ? largest : largest + std::log(total));
  });
}

// With p the probabilities, d the dropout factors and o the output:
//   value_grad_j += p_j d_j out_grad;  score_grad_j = p_j (d_j out_grad . v_j - out_grad . o);
//   query_grad = scale * sum_j score_grad_j k_j;  key_grad_j += scale * score_grad_j q.
template <typename T>
void backward(const HostView& view, const AttentionBackwardArgs& args) {
  const AttentionArgs& forward_args = args.forward;
  const Tensor& queries = forward_args.query;
  const std::int64_t size = queries.shape[3];
  const std::int64_t groups = forward_args.key.shape[2];
  const std::int64_t positions = forward_args.key.shape[1];
  const std::int64_t heads_per_group = queries.shape[2] / groups;
  const AttentionLayout layout(view, forward_args);
  const DropoutMask mask(view, forward_args.dropout);
  const T* key = view.pointer<T>(forward_args.key);
  const T* value = view.pointer<T>(forward_args.value);
  const T* log_sum_exp = view.pointer<T>(forward_args.log_sum_exp);
  T* row_dots = view.pointer<T>(args.row_dots);
  std::vector<double> factors;
  std::vector<double> query_sums(static_cast<std::size_t>(size));
  // One sequence's key and value gradients: [positions, groups, size].
  const auto sequence_size = static_cast<std::size_t>(positions * groups * size);
  std::vector<double> key_sums(sequence_size);
  std::vector<double> value_sums(sequence_size);
  const auto one_query = [&](std::int64_t sequence, std::int64_t head, std::int64_t row) {
    const KeyRange keys = layout.keys_of(sequence, row);
    const std::int64_t group = head / heads_per_group;
    const std::int64_t statistic = (sequence * queries.shape[2] + head) * queries.shape[1] + row;
    const T* query = view.pointer<T>(queries) + head_offset(queries, sequence, row, head);
    const T* out = view.pointer<T>(forward_args.out) + head_offset(forward_args.out, sequence, row, head);
    const T* out_grad = view.pointer<T>(args.out_grad) + head_offset(args.out_grad, sequence, row, head);
    const double row_dot = dot(out, out_grad, size);
    row_dots[statistic] = from_double<T>(row_dot);
    factors.resize(static_cast<std::size_t>(keys.count()));
    mask.row_factors(sequence, head, row, keys.first, factors);
    std::fill(query_sums.begin(), query_sums.end(), 0.0);
    for (std::size_t j = 0; j < factors.size(); ++j) {
      const std::int64_t position = keys.first + static_cast<std::int64_t>(j);
      const T* key_row = key + layout.offset(forward_args.key, sequence, position, group);
      const T* value_row = value + layout.offset(forward_args.value, sequence, position, group);
      const double score = forward_args.scale * dot(query, key_row, size);
      const double probability = std::exp(score - to_double(log_sum_exp[statistic]));
      const double value_dot = factors[j] == 0.0 ? 0.0 : factors[j] * dot(out_grad, value_row, size);
      const double score_grad = forward_args.scale * probability * (value_dot - row_dot);
      const std::int64_t place = (position * groups + group) * size;
      add_scaled(query_sums.data(), score_grad, key_row, size);
      add_scaled(key_sums.data() + place, score_grad, query, size);
      add_scaled(value_sums.data() + place, probability * factors[j], out_grad, size);
    }
    store(view.pointer<T>(args.query_grad) + head_offset(args.query_grad, sequence, row, head),
          query_sums.data(), size);
  };
  for (std::int64_t sequence = 0; sequence < queries.shape[0]; ++sequence) {
    std::fill(key_sums.begin(), key_sums.end(), 0.0);
    std::fill(value_sums.begin(), value_sums.end(), 0.0);
    for (std::int64_t head = 0; head < queries.shape[2]; ++head) {
      for (std::int64_t row = 0; row < queries.shape[1]; ++row) one_query(sequence, head, row);
    }
    for (std::int64_t position = 0; position < positions; ++position) {
      for (std::int64_t group = 0; group < groups; ++group) {
        const std::int64_t place = (position * groups + group) * size;
        store(view.pointer<T>(args.key_grad) + head_offset(args.key_grad, sequence, position, group),
              key_sums.data() + place, size);
        store(view.pointer<T>(args.value_grad) + head_offset(args.value_grad, sequence, position, group),
              value_sums.data() + place, size);
      }
    }
  }
}

}  // namespace

void attention_forward(const HostView& view, const AttentionArgs& args) {
  with_compute_type(args.query.dtype, [&](auto type) { forward<typename decltype(type)::type>(view, args); });
}

void attention_backward(const HostView& view, const AttentionBackwardArgs& args) {
  with_compute_type(args.forward.query.dtype,
                    [&](auto type) { backward<typename decltype(type)::type>(view, args); });
}

}  // namespace megalith::reference
