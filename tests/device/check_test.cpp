// Wrong calls are refused before anything runs, with the kernel, the argument, what was found and what was
// expected.
#include "device/check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace megalith {
namespace {

using testing::HasSubstr;

// Addresses that are never followed; one megabyte apart.
Tensor at(int number, const Shape& shape, DType dtype = DType::float32) {
  return {DeviceAddress{static_cast<std::uintptr_t>(number + 1) << 20}, dtype, shape};
}

template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::internal);
    return error.what();
  }
  return "accepted";
}

MatmulArgs product() {
  MatmulArgs args;
  args.a = {.data = at(0, {2, 3})};
  args.b = {.data = at(1, {3, 4})};
  args.c = at(2, {2, 4});
  return args;
}

TEST(Check, MatmulNamesWhatDoesNotFit) {
  EXPECT_EQ(refusal([] { check_matmul(product()); }), "accepted");
  const auto changed = [](auto&& change) {
    return refusal([&] {
      MatmulArgs args = product();
      change(args);
      check_matmul(args);
    });
  };
  EXPECT_THAT(changed([](MatmulArgs& args) { args.b.data = at(1, {5, 4}); }),
              testing::AllOf(HasSubstr("matmul"), HasSubstr("b is [5, 4]"), HasSubstr("3 rows")));
  EXPECT_THAT(changed([](MatmulArgs& args) { args.b.transposed = true; }), HasSubstr("transposed"));
  EXPECT_THAT(changed([](MatmulArgs& args) { args.c = at(2, {4, 2}); }),
              HasSubstr("c is [4, 2]; expected [2, 4]"));
  EXPECT_THAT(changed([](MatmulArgs& args) { args.c = {}; }), HasSubstr("c is absent"));
  EXPECT_THAT(changed([](MatmulArgs& args) { args.c.dtype = DType::bfloat16; }), HasSubstr("bfloat16"));
  EXPECT_THAT(changed([](MatmulArgs& args) { args.b.data.dtype = DType::float64; }),
              HasSubstr("b is float64"));
  EXPECT_THAT(changed([](MatmulArgs& args) { args.c = at(0, {2, 4}); }), HasSubstr("in a's memory"));
  EXPECT_THAT(changed([](MatmulArgs& args) { args.c.strides[1] = 2; }), HasSubstr("innermost stride"));
  EXPECT_THAT(changed([](MatmulArgs& args) { args.bias = at(3, {3}); }),
              HasSubstr("bias is [3]; expected [4]"));
  EXPECT_THAT(changed([](MatmulArgs& args) { args.pre_activation = at(3, {2, 4}); }),
              HasSubstr("pre_activation"));
  EXPECT_THAT(changed([](MatmulArgs& args) {
                args.accumulate = true;
                args.bias = at(3, {4});
              }),
              HasSubstr("accumulate"));
  EXPECT_EQ(changed([](MatmulArgs& args) {
              args.a.data.dtype = args.b.data.dtype = DType::bfloat16;  // into its sum type
            }),
            "accepted");
  EXPECT_EQ(changed([](MatmulArgs& args) { args.a.data.strides[0] = 7; }), "accepted");
}

AttentionArgs attention() {
  AttentionArgs args;
  args.query = at(0, {2, 5, 4, 8});
  args.key = at(1, {2, 6, 2, 8});
  args.value = at(2, {2, 6, 2, 8});
  args.out = at(3, {2, 5, 4, 8});
  args.log_sum_exp = at(4, {2, 4, 5});
  return args;
}

TEST(Check, AttentionNamesWhatDoesNotFit) {
  EXPECT_EQ(refusal([] { check_attention_forward(attention()); }), "accepted");
  const auto changed = [](auto&& change) {
    return refusal([&] {
      AttentionArgs args = attention();
      change(args);
      check_attention_forward(args);
    });
  };
  EXPECT_THAT(changed([](AttentionArgs& args) { args.key = args.value = at(1, {2, 6, 3, 8}); }),
              HasSubstr("divides the 4 heads"));
  EXPECT_THAT(changed([](AttentionArgs& args) { args.log_sum_exp = at(4, {2, 5, 4}); }),
              HasSubstr("[2, 4, 5]"));
  EXPECT_THAT(changed([](AttentionArgs& args) { args.cu_seqlens = at(5, {3}, DType::int32); }),
              HasSubstr("cu_seqlens"));
  EXPECT_THAT(changed([](AttentionArgs& args) { args.block_table = at(5, {2, 3}, DType::int32); }),
              HasSubstr("key_lengths"));
  EXPECT_THAT(changed([](AttentionArgs& args) {
                args.key_lengths = at(5, {2}, DType::int32);
                args.query_offset = 3;
              }),
              HasSubstr("offsets"));
  EXPECT_THAT(changed([](AttentionArgs& args) { args.dropout.probability = 1.0; }), HasSubstr("[0, 1)"));
  EXPECT_THAT(changed([](AttentionArgs& args) { args.dropout.probability = 0.5; }),
              HasSubstr("samples is absent"));
  EXPECT_THAT(refusal([] {
                AttentionBackwardArgs args;
                args.forward = attention();
                args.forward.key_lengths = at(5, {2}, DType::int32);
                check_attention_backward(args);
              }),
              HasSubstr("attention_backward"));
}

TEST(Check, AliasesOnlyWhereTheContractAllowsThem) {
  const Tensor x = at(0, {4, 8});
  const Tensor inside(x.address + 16, DType::float32, {2, 8});
  EXPECT_EQ(refusal([&] { check_activation_forward(x, x); }), "accepted");
  EXPECT_EQ(refusal([&] { check_add(x, x, x); }), "accepted");
  EXPECT_THAT(refusal([&] { check_activation_forward(inside, at(0, {2, 8})); }),
              HasSubstr("part of x's memory"));
  EXPECT_THAT(refusal([&] { check_copy(x, x); }), HasSubstr("from's memory"));
  EXPECT_THAT(refusal([&] {
                check_layer_norm_forward({x, at(1, {8}), at(2, {8}), x, at(3, {4}), at(4, {4}), 1e-5});
              }),
              HasSubstr("x's memory"));
}

TEST(Check, OtherKernels) {
  EXPECT_THAT(refusal([] { check_copy(at(0, {4}, DType::int32), at(1, {4})); }), HasSubstr("int32"));
  EXPECT_EQ(refusal([] { check_copy(at(0, {4}, DType::bfloat16), at(1, {4})); }), "accepted");
  EXPECT_THAT(
      refusal([] { check_add_column_sums(at(0, {4}, DType::bfloat16), at(1, {3, 4}, DType::bfloat16)); }),
      HasSubstr("sums is bfloat16; expected float32"));
  EXPECT_THAT(refusal([] { check_block_norms(at(0, {1}, DType::float64), at(1, {norm_block + 1})); }),
              HasSubstr("expected [2]"));
  EXPECT_THAT(refusal([] {
                CrossEntropyArgs args{};
                args.logits = at(0, {3, 10});
                args.columns = 11;
                check_cross_entropy_forward(args);
              }),
              HasSubstr("columns is 11"));
  EXPECT_THAT(refusal([] {
                SgdArgs args{};
                args.weights = at(0, {5});
                args.gradient = at(1, {5});
                args.momentum = 0.9;
                check_sgd(args);
              }),
              HasSubstr("momentum is 0.9 without"));
  EXPECT_THAT(refusal([] {
                AdamWArgs args{};
                args.weights = at(0, {5}, DType::bfloat16);
                check_adamw(args);
              }),
              HasSubstr("weights is bfloat16"));
}

}  // namespace
}  // namespace megalith
