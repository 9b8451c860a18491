// attention_forward and attention_backward.
#include <algorithm>
#include <cmath>

#include "tests/device/support/cases.h"

namespace megalith::testing_support {
namespace {

std::int64_t blocks_per_sequence(const AttentionShape& s) {
  return s.block == 0 ? 0 : (s.keys + s.block - 1) / s.block;
}

std::string describe(const AttentionShape& s, std::string_view what) {
  return format("attention {} B{} S{} T{} N{} G{} D{}{} offsets {}/{}{}{}{} dropout {}{}", what, s.batch,
                s.queries, s.keys, s.heads, s.groups, s.head_size, s.causal ? " causal" : "", s.query_offset,
                s.key_offset, s.cu_seqlens.empty() ? "" : " documents",
                s.key_lengths.empty() ? "" : " lengths", s.block == 0 ? "" : " blocks", s.dropout,
                s.strided ? " strided" : "");
}

/// A view into what a fused query-key-value projection writes: other heads follow each position's own.
Shape interleaved(const Shape& shape, bool strided) {
  return strided ? Shape{shape[0], shape[1], shape[2] * 2 + 1, shape[3]} : Shape{};
}

double scale_of(const AttentionShape& s) {
  return 1.0 / std::sqrt(static_cast<double>(s.head_size));
}

enum Place : std::size_t {
  query,
  key,
  value,
  out,
  log_sum_exp,
  cu_seqlens,
  key_lengths,
  block_table,
  samples
};

/// The arguments of the forward call in the order of Place; absent ones are empty tensors that are not passed
/// on.
std::vector<Argument> forward_arguments(const AttentionShape& s, std::uint64_t seed) {
  const Shape queries{s.batch, s.queries, s.heads, s.head_size};
  const std::int64_t blocks = blocks_per_sequence(s) * s.batch + 2;  // two that nobody owns
  const Shape keys = s.block == 0 ? Shape{s.batch, s.keys, s.groups, s.head_size}
                                  : Shape{blocks, s.block, s.groups, s.head_size};
  const Shape statistics{s.batch, s.heads, s.queries};
  const double length = static_cast<double>(s.head_size + s.keys) + 32.0;
  const double survivor = 1.0 / (1.0 - s.dropout);
  std::vector<double> table(static_cast<std::size_t>(s.batch * blocks_per_sequence(s)));
  // Blocks in an order that is not their sequence's.
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<double>(blocks - 1) - static_cast<double>(i);
  std::vector<double> sample_numbers(static_cast<std::size_t>(s.batch));
  for (std::size_t i = 0; i < sample_numbers.size(); ++i)
    sample_numbers[i] = 1000.0 + 7.0 * static_cast<double>(i);
  const auto length_of = [](const std::vector<double>& values) {
    return Shape{static_cast<std::int64_t>(values.size())};
  };
  return {{"query",
           Element::compute,
           queries,
           Use::input,
           uniform(queries, -2, 2, seed),
           {},
           interleaved(queries, s.strided)},
          {"key",
           Element::compute,
           keys,
           Use::input,
           uniform(keys, -2, 2, seed + 1),
           {},
           interleaved(keys, s.strided)},
          {"value",
           Element::compute,
           keys,
           Use::input,
           uniform(keys, -1, 1, seed + 2),
           {},
           interleaved(keys, s.strided)},
          {"out",
           Element::compute,
           queries,
           Use::output,
           {},
           Bound::sum_of(length, survivor, 3.0),
           interleaved(queries, s.strided)},
          {"log_sum_exp", Element::sum, statistics, Use::output, {}, Bound::sum_of(length, 2.0), {}},
          {"cu_seqlens", Element::int32, length_of(s.cu_seqlens), Use::input, s.cu_seqlens, {}, {}},
          {"key_lengths", Element::int32, length_of(s.key_lengths), Use::input, s.key_lengths, {}, {}},
          {"block_table", Element::int32, {s.batch, blocks_per_sequence(s)}, Use::input, table, {}, {}},
          {"samples", Element::int64, {s.batch}, Use::input, sample_numbers, {}, {}}};
}

AttentionArgs forward_args(const AttentionShape& s, std::span<const Tensor> t) {
  AttentionArgs args;
  args.query = t[query];
  args.key = t[key];
  args.value = t[value];
  args.out = t[out];
  args.log_sum_exp = t[log_sum_exp];
  args.scale = scale_of(s);
  args.causal = s.causal;
  args.query_offset = s.query_offset;
  args.key_offset = s.key_offset;
  if (!s.cu_seqlens.empty()) args.cu_seqlens = t[cu_seqlens];
  if (!s.key_lengths.empty()) args.key_lengths = t[key_lengths];
  if (s.block != 0) args.block_table = t[block_table];
  args.dropout.probability = s.dropout;
  args.dropout.key = philox_key(3, "dropout:attention");
  args.dropout.samples = t[samples];
  args.dropout.first_head = 5;
  args.dropout.first_row = 11;
  args.dropout.first_column = 2;
  return args;
}

}  // namespace

KernelCase attention_forward_case(const AttentionShape& s, std::uint64_t seed) {
  KernelCase made{describe(s, "forward"), forward_arguments(s, seed), {}};
  made.enqueue = [s](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.attention_forward(queue, forward_args(s, t));
  };
  return made;
}

KernelCase attention_backward_case(const AttentionShape& s, std::uint64_t seed) {
  KernelCase made{describe(s, "backward"), forward_arguments(s, seed), {}};
  const auto reference = make_device({.name = "reference"});
  const KernelCase forward = attention_forward_case(s, seed);
  PlacedCase placed(forward, *reference, DType::float64, 0);
  placed.enqueue();
  placed.finish();
  made.arguments[out].values = placed.values(out);
  made.arguments[log_sum_exp].values = placed.values(log_sum_exp);
  made.arguments[out].use = Use::input;
  made.arguments[log_sum_exp].use = Use::input;

  const Shape queries = made.arguments[query].shape;
  const Shape keys = made.arguments[key].shape;
  const double survivor = 1.0 / (1.0 - s.dropout);
  // A score's gradient is at most 2 p |out_grad . v|; a key collects those of all its queries and of the
  // heads that share it, whose p add up to about 1 + ln S for the earliest keys.
  const double score = 2.0 * survivor * std::sqrt(static_cast<double>(s.head_size));
  const double collected = (2.0 + std::log(static_cast<double>(s.queries + 1))) *
                           static_cast<double>(s.heads) /
                           static_cast<double>(std::max<std::int64_t>(s.groups, 1));
  const double length = 4.0 * static_cast<double>(s.head_size + s.keys + s.queries) + 64.0;
  const double scale = 2.0 * scale_of(s);
  const std::size_t first = made.arguments.size();
  made.arguments.push_back({"out_grad",
                            Element::compute,
                            queries,
                            Use::input,
                            uniform(queries, -1, 1, seed + 5),
                            {},
                            interleaved(queries, s.strided)});
  made.arguments.push_back({"query_grad",
                            Element::compute,
                            queries,
                            Use::output,
                            {},
                            Bound::sum_of(length, scale * score, 2.0),
                            interleaved(queries, s.strided)});
  made.arguments.push_back({"key_grad",
                            Element::compute,
                            keys,
                            Use::output,
                            {},
                            Bound::sum_of(length, scale * score * collected, 2.0),
                            interleaved(keys, s.strided)});
  made.arguments.push_back({"value_grad",
                            Element::compute,
                            keys,
                            Use::output,
                            {},
                            Bound::sum_of(length, survivor * collected, 2.0),
                            interleaved(keys, s.strided)});
  made.arguments.push_back({"row_dots",
                            Element::sum,
                            {s.batch, s.heads, s.queries},
                            Use::output,
                            {},
                            Bound::sum_of(static_cast<double>(s.head_size) + 4.0, survivor),
                            {}});
  made.enqueue = [s, first](Device& device, QueueKind queue, std::span<const Tensor> t) {
    AttentionBackwardArgs args;
    args.forward = forward_args(s, t);
    args.out_grad = t[first];
    args.query_grad = t[first + 1];
    args.key_grad = t[first + 2];
    args.value_grad = t[first + 3];
    args.row_dots = t[first + 4];
    device.attention_backward(queue, args);
  };
  return made;
}

namespace {

/// Shapes that both directions take.
std::vector<AttentionShape> common_shapes() {
  return {
      {.head_size = 1},
      {.batch = 2, .queries = 7, .keys = 7, .heads = 3, .groups = 3, .head_size = 5},
      {.batch = 2, .queries = 33, .keys = 33, .heads = 4, .groups = 2, .head_size = 16, .strided = true},
      {.batch = 1, .queries = 19, .keys = 31, .heads = 2, .groups = 1, .head_size = 64, .causal = false},
      // Later queries against all keys, as in a step of generation or a chunk of a longer sequence.
      {.batch = 1, .queries = 5, .keys = 40, .heads = 2, .groups = 2, .head_size = 8, .query_offset = 35},
      // Some queries stand before every key: rows without keys.
      {.batch = 1,
       .queries = 12,
       .keys = 9,
       .heads = 2,
       .groups = 2,
       .head_size = 8,
       .query_offset = 2,
       .key_offset = 6},
      {.batch = 1,
       .queries = 6,
       .keys = 6,
       .heads = 1,
       .groups = 1,
       .head_size = 4,
       .query_offset = 0,
       .key_offset = 50},
      {.batch = 1,
       .queries = 37,
       .keys = 37,
       .heads = 2,
       .groups = 1,
       .head_size = 32,
       .cu_seqlens = {0, 1, 1, 14, 37}},
      {.batch = 1,
       .queries = 23,
       .keys = 23,
       .heads = 2,
       .groups = 2,
       .head_size = 8,
       .causal = false,
       .cu_seqlens = {0, 11, 23},
       .strided = true},
      {.batch = 2, .queries = 29, .keys = 29, .heads = 2, .groups = 1, .head_size = 16, .dropout = 0.3},
      {.batch = 1,
       .queries = 20,
       .keys = 26,
       .heads = 2,
       .groups = 2,
       .head_size = 12,
       .causal = false,
       .dropout = 0.1,
       .strided = true},
      {.batch = 0, .queries = 4, .keys = 4, .heads = 2, .groups = 2},
      {.batch = 1, .queries = 0, .keys = 5, .heads = 2, .groups = 2, .causal = false},
      {.batch = 1, .queries = 3, .keys = 0, .heads = 2, .groups = 2, .causal = false},
      {.batch = 1, .queries = 150, .keys = 150, .heads = 2, .groups = 2, .head_size = 64, .strided = true},
      {.batch = 1, .queries = 131, .keys = 131, .heads = 1, .groups = 1, .head_size = 80, .dropout = 0.1},
      {.batch = 1, .queries = 9, .keys = 9, .heads = 2, .groups = 1, .head_size = 321},
      // Several blocks of keys, and tiles of rows that see a part of one.
      {.batch = 1, .queries = 410, .keys = 410, .heads = 2, .groups = 1, .head_size = 20, .dropout = 0.1},
      {.batch = 1,
       .queries = 500,
       .keys = 500,
       .heads = 1,
       .groups = 1,
       .head_size = 16,
       .cu_seqlens = {0, 70, 391, 392, 500}},
  };
}

std::vector<KernelCase> forward_cases() {
  std::vector<AttentionShape> shapes = common_shapes();
  const std::vector<AttentionShape> only = {
      {.batch = 3,
       .queries = 1,
       .keys = 20,
       .heads = 2,
       .groups = 1,
       .head_size = 16,
       .key_lengths = {20, 7, 1}},
      {.batch = 2, .queries = 4, .keys = 20, .heads = 2, .groups = 2, .head_size = 8, .key_lengths = {13, 4}},
      {.batch = 2,
       .queries = 3,
       .keys = 9,
       .heads = 2,
       .groups = 2,
       .head_size = 8,
       .causal = false,
       .key_lengths = {9, 0}},
      {.batch = 3,
       .queries = 1,
       .keys = 21,
       .heads = 4,
       .groups = 2,
       .head_size = 16,
       .key_lengths = {21, 8, 3},
       .block = 8},
      {.batch = 2,
       .queries = 6,
       .keys = 11,
       .heads = 2,
       .groups = 2,
       .head_size = 8,
       .key_lengths = {11, 6},
       .block = 4,
       .strided = true},
  };
  shapes.insert(shapes.end(), only.begin(), only.end());
  std::vector<KernelCase> cases;
  std::uint64_t seed = 1000;
  for (const AttentionShape& shape : shapes) cases.push_back(attention_forward_case(shape, seed += 10));
  return cases;
}

std::vector<KernelCase> backward_cases() {
  std::vector<KernelCase> cases;
  std::uint64_t seed = 2000;
  for (const AttentionShape& shape : common_shapes())
    cases.push_back(attention_backward_case(shape, seed += 10));
  return cases;
}

}  // namespace

std::vector<KernelGroup> attention_groups() {
  return {{"attention_forward", forward_cases}, {"attention_backward", backward_cases}};
}

}  // namespace megalith::testing_support
