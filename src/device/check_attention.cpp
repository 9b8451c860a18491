#include "device/check.h"
#include "device/check_support.h"

namespace megalith {
namespace {

void check_forward(const KernelCheck& check, const AttentionArgs& args) {
  check.rank("query", args.query, 4);
  check.strided("query", args.query, args.query.shape);
  check.compute_dtype("query", args.query);
  const DType compute = args.query.dtype;
  const std::int64_t batch = args.query.shape[0];
  const std::int64_t queries = args.query.shape[1];
  const std::int64_t heads = args.query.shape[2];
  const std::int64_t head_size = args.query.shape[3];

  check.rank("key", args.key, 4);
  const Shape& keys = args.key.shape;
  check.strided("key", args.key,
                args.block_table ? Shape{keys[0], keys[1], keys[2], head_size}
                                 : Shape{batch, keys[1], keys[2], head_size});
  check.dtype("key", args.key, compute);
  check.strided("value", args.value, keys);
  check.dtype("value", args.value, compute);
  check.require(keys[2] > 0 && heads % keys[2] == 0, "key", format("of {} groups", keys[2]),
                format("a number of groups that divides the {} heads", heads));
  check.strided("out", args.out, args.query.shape);
  check.dtype("out", args.out, compute);
  check.exactly("log_sum_exp", args.log_sum_exp, sum_type(compute), {batch, heads, queries});
  check.apart("out", args.out, "query", args.query);
  check.apart("out", args.out, "key", args.key);
  check.apart("out", args.out, "value", args.value);

  check.require(args.query_offset >= 0 && args.key_offset >= 0, "query_offset, key_offset",
                format("{}, {}", args.query_offset, args.key_offset), "positions of 0 or more");
  const bool offsets = args.query_offset != 0 || args.key_offset != 0;
  if (args.cu_seqlens) {
    check.rank("cu_seqlens", args.cu_seqlens, 1);
    check.exactly("cu_seqlens", args.cu_seqlens, DType::int32, args.cu_seqlens.shape);
    check.require(args.cu_seqlens.shape[0] >= 1, "cu_seqlens", "empty", "documents + 1 boundaries");
    check.require(batch == 1 && keys[1] == queries, "cu_seqlens",
                  format("given with {} sequences, {} queries, {} keys", batch, queries, keys[1]),
                  "one sequence with as many queries as keys");
    check.require(!offsets && !args.key_lengths && !args.block_table, "cu_seqlens", "given",
                  "no offsets, key_lengths or block_table beside it");
  }
  if (args.key_lengths) {
    check.exactly("key_lengths", args.key_lengths, DType::int32, {batch});
    check.require(!offsets, "key_lengths", "given", "no position offsets beside it");
  }
  if (args.block_table) {
    check.rank("block_table", args.block_table, 2);
    check.exactly("block_table", args.block_table, DType::int32, {batch, args.block_table.shape[1]});
    check.require(static_cast<bool>(args.key_lengths), "block_table", "given", "key_lengths beside it");
    check.require(keys[1] > 0, "key", keys.to_string(), "blocks of at least one position");
  }
  const std::int64_t key_positions = args.block_table ? args.block_table.shape[1] * keys[1] : keys[1];
  check.dropout(args.dropout, batch, heads, queries, key_positions);
}

}  // namespace

void check_attention_forward(const AttentionArgs& args) {
  check_forward(KernelCheck("attention_forward"), args);
}

void check_attention_backward(const AttentionBackwardArgs& args) {
  const KernelCheck check("attention_backward");
  const AttentionArgs& forward = args.forward;
  check_forward(check, forward);
  check.require(!forward.key_lengths && !forward.block_table, "key_lengths or block_table", "given",
                "neither (they belong to generation)");
  const DType compute = forward.query.dtype;
  check.strided("out_grad", args.out_grad, forward.query.shape);
  check.dtype("out_grad", args.out_grad, compute);
  check.strided("query_grad", args.query_grad, forward.query.shape);
  check.dtype("query_grad", args.query_grad, compute);
  check.strided("key_grad", args.key_grad, forward.key.shape);
  check.dtype("key_grad", args.key_grad, compute);
  check.strided("value_grad", args.value_grad, forward.key.shape);
  check.dtype("value_grad", args.value_grad, compute);
  check.exactly("row_dots", args.row_dots, sum_type(compute), forward.log_sum_exp.shape);
  for (const Tensor& gradient : {args.query_grad, args.key_grad, args.value_grad}) {
    for (const Tensor& input : {forward.query, forward.key, forward.value, forward.out, args.out_grad}) {
      check.apart("a gradient", gradient, "an input", input);
    }
  }
}

}  // namespace megalith
