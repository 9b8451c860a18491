// Makers of kernel cases, one a kernel, and the lists that the tests run.
#pragma once

#include "tests/device/support/kernel_case.h"

namespace megalith::testing_support {

struct MatmulShape {
  std::int64_t m = 1;
  std::int64_t n = 1;
  std::int64_t k = 1;
  bool a_transposed = false;
  bool b_transposed = false;
  bool accumulate = false;
  bool bias = false;
  Activation activation = Activation::none;
  bool pre_activation = false;
  bool c_in_sum_type = false;
  bool strided = false;
  double alpha = 1.0;
};
KernelCase matmul_case(const MatmulShape& shape, std::uint64_t seed);

struct AttentionShape {
  std::int64_t batch = 1;
  std::int64_t queries = 1;
  std::int64_t keys = 1;
  std::int64_t heads = 1;
  std::int64_t groups = 1;
  std::int64_t head_size = 8;
  bool causal = true;
  std::int64_t query_offset = 0;
  std::int64_t key_offset = 0;
  std::vector<double> cu_seqlens = {};
  std::vector<double> key_lengths = {};
  std::int64_t block = 0;  ///< keys and values in blocks of this size, by a block table
  double dropout = 0.0;
  bool strided = false;
};
KernelCase attention_forward_case(const AttentionShape& shape, std::uint64_t seed);
/// Inputs out and log_sum_exp come from the float64 reference device.
KernelCase attention_backward_case(const AttentionShape& shape, std::uint64_t seed);

KernelCase layer_norm_forward_case(std::int64_t rows, std::int64_t hidden, std::uint64_t seed);
enum class Inplace : std::uint8_t { none, y_grad, residual };
KernelCase layer_norm_backward_case(std::int64_t rows, std::int64_t hidden, bool residual, bool x_grad,
                                    bool parameter_grads, Inplace inplace, std::uint64_t seed);

struct DropoutShape {
  std::int64_t batch = 1;
  std::int64_t rows = 1;
  std::int64_t hidden = 1;
  double probability = 0.1;
  bool bias = true;
  bool residual = true;
  std::int64_t first_row = 0;
  std::int64_t first_column = 0;
  bool in_place = false;  ///< y in residual's memory (or x's without one); x_grad in y_grad's
};
KernelCase dropout_add_case(const DropoutShape& shape, std::uint64_t seed);
KernelCase dropout_backward_case(const DropoutShape& shape, std::uint64_t seed);

KernelCase embedding_forward_case(std::int64_t tokens, std::int64_t rows, std::int64_t hidden,
                                  std::int64_t first_row, bool accumulate, std::uint64_t seed);
KernelCase embedding_backward_case(std::int64_t tokens, std::int64_t rows, std::int64_t hidden,
                                   std::int64_t first_row, std::uint64_t seed);

struct CrossEntropyShape {
  std::int64_t rows = 1;
  std::int64_t columns = 1;
  std::int64_t padding = 0;  ///< storage columns past the true ones
  std::int64_t first_column = 0;
  bool strided = false;
};
KernelCase cross_entropy_forward_case(const CrossEntropyShape& shape, std::uint64_t seed);
KernelCase cross_entropy_backward_case(const CrossEntropyShape& shape, std::uint64_t seed);

KernelCase adamw_case(std::int64_t count, std::int64_t step, double gradient_scale, bool compute_copy,
                      std::uint64_t seed);
KernelCase sgd_case(std::int64_t count, double momentum, double gradient_scale, bool compute_copy,
                    std::uint64_t seed);

std::vector<KernelGroup> memory_groups();
std::vector<KernelGroup> matmul_groups();
std::vector<KernelGroup> activation_groups();
std::vector<KernelGroup> attention_groups();
std::vector<KernelGroup> layer_norm_groups();
std::vector<KernelGroup> dropout_groups();
std::vector<KernelGroup> embedding_groups();
std::vector<KernelGroup> cross_entropy_groups();
std::vector<KernelGroup> sum_groups();
std::vector<KernelGroup> optimizer_groups();

/// All of them.
std::vector<KernelGroup> all_groups();

}  // namespace megalith::testing_support
