// The float64 reference itself, against formulas written here in another way.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/philox.h"
#include "tests/device/support/cases.h"

namespace megalith {
namespace {

using testing_support::KernelCase;
using testing_support::PlacedCase;

std::vector<std::vector<double>> run(const KernelCase& kernel_case, std::string_view name = "reference",
                                     DType compute = DType::float64) {
  const auto device = make_device({.name = std::string(name)});
  PlacedCase placed(kernel_case, *device, compute, 0);
  placed.enqueue();
  placed.finish();
  std::vector<std::vector<double>> values;
  for (std::size_t i = 0; i < kernel_case.arguments.size(); ++i) values.push_back(placed.values(i));
  return values;
}

TEST(ReferenceFormula, MatmulInAllLayouts) {
  for (const bool a_transposed : {false, true}) {
    for (const bool b_transposed : {false, true}) {
      const auto values = run(testing_support::matmul_case({.m = 5,
                                                            .n = 300,
                                                            .k = 7,
                                                            .a_transposed = a_transposed,
                                                            .b_transposed = b_transposed,
                                                            .bias = true,
                                                            .strided = true,
                                                            .alpha = 0.5},
                                                           1));
      for (std::size_t i = 0; i < 5; ++i) {
        for (std::size_t j = 0; j < 300; ++j) {
          long double sum = 0.0L;
          for (std::size_t k = 0; k < 7; ++k) {
            sum += static_cast<long double>(values[0][a_transposed ? k * 5 + i : i * 7 + k]) *
                   static_cast<long double>(values[1][b_transposed ? j * 7 + k : k * 300 + j]);
          }
          EXPECT_NEAR(values[2][i * 300 + j], static_cast<double>(0.5L * sum) + values[3][j], 1e-14);
        }
      }
    }
  }
}

// Textbook attention: the whole score matrix, softmax of each row, product with the values.
void expect_textbook_attention(const testing_support::AttentionShape& s) {
  const auto values = run(attention_forward_case(s, 500));
  const auto at = [&](std::size_t which, std::int64_t b, std::int64_t t, std::int64_t heads, std::int64_t n,
                      std::int64_t length, std::int64_t d) {
    return values[which][static_cast<std::size_t>(((b * length + t) * heads + n) * s.head_size + d)];
  };
  for (std::int64_t b = 0; b < s.batch; ++b) {
    for (std::int64_t n = 0; n < s.heads; ++n) {
      const std::int64_t group = n * s.groups / s.heads;
      for (std::int64_t i = 0; i < s.queries; ++i) {
        std::vector<double> weights(static_cast<std::size_t>(s.keys), 0.0);
        double total = 0.0;
        for (std::int64_t j = 0; j < s.keys; ++j) {
          bool seen = !s.causal || s.key_offset + j <= s.query_offset + i;
          if (!s.key_lengths.empty()) {
            const auto length = static_cast<std::int64_t>(s.key_lengths[static_cast<std::size_t>(b)]);
            seen = j < length && (!s.causal || j <= length - s.queries + i);
          }
          for (std::size_t cut = 0; cut < s.cu_seqlens.size(); ++cut) {
            const double edge = s.cu_seqlens[cut];
            seen = seen && (static_cast<double>(i) < edge) == (static_cast<double>(j) < edge);
          }
          if (!seen) continue;
          double score = 0.0;
          for (std::int64_t d = 0; d < s.head_size; ++d) {
            score += at(0, b, i, s.heads, n, s.queries, d) * at(1, b, j, s.groups, group, s.keys, d);
          }
          weights[static_cast<std::size_t>(j)] =
              std::exp(score / std::sqrt(static_cast<double>(s.head_size)));
          total += weights[static_cast<std::size_t>(j)];
        }
        const double log_sum_exp = values[4][static_cast<std::size_t>((b * s.heads + n) * s.queries + i)];
        if (total == 0.0) {
          EXPECT_EQ(log_sum_exp, -std::numeric_limits<double>::infinity());
        } else {
          EXPECT_NEAR(log_sum_exp, std::log(total), 1e-12);
        }
        for (std::int64_t d = 0; d < s.head_size; ++d) {
          double expected = 0.0;
          for (std::int64_t j = 0; j < s.keys; ++j) {
            const double weight = weights[static_cast<std::size_t>(j)];
            if (weight == 0.0) continue;
            const std::uint32_t bits =
                dropout_bits(philox_key(3, "dropout:attention"), 1000 + 7 * static_cast<std::uint64_t>(b),
                             static_cast<std::uint32_t>(5 + n), static_cast<std::uint32_t>(11 + i),
                             static_cast<std::uint32_t>(2 + j));
            const bool kept = s.dropout == 0.0 || bits >= dropout_threshold(s.dropout);
            if (kept)
              expected += weight / total / (1.0 - s.dropout) * at(2, b, j, s.groups, group, s.keys, d);
          }
          ASSERT_NEAR(at(3, b, i, s.heads, n, s.queries, d), expected, 1e-12) << b << " " << n << " " << i;
        }
      }
    }
  }
}

TEST(ReferenceFormula, Attention) {
  expect_textbook_attention({.batch = 2, .queries = 9, .keys = 9, .heads = 4, .groups = 2, .head_size = 5});
  expect_textbook_attention(
      {.queries = 7, .keys = 11, .heads = 6, .groups = 2, .causal = false, .strided = true});
  expect_textbook_attention({.queries = 8, .keys = 8, .query_offset = 1, .key_offset = 4});
  expect_textbook_attention({.queries = 12, .keys = 12, .heads = 2, .cu_seqlens = {0, 5, 5, 12}});
  expect_textbook_attention({.batch = 2, .queries = 3, .keys = 10, .key_lengths = {10, 4}});
  expect_textbook_attention({.batch = 2, .queries = 10, .keys = 10, .heads = 2, .dropout = 0.25});
}

// Pages in any order hold the same keys as one long buffer.
TEST(ReferenceFormula, PagedAttentionEqualsContiguous) {
  testing_support::AttentionShape paged{
      .batch = 2, .queries = 2, .keys = 12, .heads = 2, .groups = 1, .head_size = 4};
  paged.key_lengths = {11, 6};
  testing_support::AttentionShape flat = paged;
  paged.block = 4;
  const KernelCase paged_case = attention_forward_case(paged, 600);
  KernelCase flat_case = attention_forward_case(flat, 600);
  const std::vector<double>& table = paged_case.arguments[7].values;  // [2, 3]
  for (const std::size_t which : {1U, 2U}) {
    const std::vector<double>& blocks = paged_case.arguments[which].values;  // [blocks, 4, 1, 4]
    for (std::size_t i = 0; i < flat_case.arguments[which].values.size(); ++i) {
      const std::size_t position = i / 4 % 12;
      const auto block = static_cast<std::size_t>(table[i / 48 * 3 + position / 4]);
      flat_case.arguments[which].values[i] = blocks[(block * 4 + position % 4) * 4 + i % 4];
    }
  }
  const auto from_pages = run(paged_case);
  const auto from_flat = run(flat_case);
  EXPECT_EQ(from_pages[3], from_flat[3]);
  EXPECT_EQ(from_pages[4], from_flat[4]);
}

// Two halves of the keys, merged by their log-sum-exp, are the whole: what ring attention does.
TEST(ReferenceFormula, PartialAttentionMerges) {
  testing_support::AttentionShape whole{.queries = 6, .keys = 6, .heads = 1, .groups = 1, .head_size = 4};
  const KernelCase whole_case = attention_forward_case(whole, 700);
  const auto half = [&](std::int64_t first) {
    testing_support::AttentionShape shape = whole;
    shape.keys = 3;
    shape.key_offset = first;
    KernelCase made = attention_forward_case(shape, 700);
    for (const std::size_t which : {1U, 2U}) {
      const auto begin = whole_case.arguments[which].values.begin() + first * 4;
      made.arguments[which].values.assign(begin, begin + 12);
    }
    return run(made);
  };
  const auto all = run(whole_case);
  const auto early = half(0);
  const auto late = half(3);
  for (std::size_t i = 0; i < 6; ++i) {
    const double early_share = std::exp(early[4][i] - all[4][i]);
    const double late_share = std::exp(late[4][i] - all[4][i]);
    EXPECT_NEAR(early_share + late_share, 1.0, 1e-12);
    for (std::size_t d = 0; d < 4; ++d) {
      EXPECT_NEAR(early_share * early[3][i * 4 + d] + late_share * late[3][i * 4 + d], all[3][i * 4 + d],
                  1e-12);
    }
  }
}

TEST(ReferenceFormula, LayerNormRowsHaveMeanZeroAndVarianceOne) {
  KernelCase made = testing_support::layer_norm_forward_case(3, 50, 1);
  made.arguments[1].values.assign(50, 1.0);
  made.arguments[2].values.assign(50, 0.0);
  const auto values = run(made);
  for (std::size_t row = 0; row < 3; ++row) {
    double mean = 0.0;
    double square = 0.0;
    for (std::size_t i = 0; i < 50; ++i) {
      mean += values[3][row * 50 + i] / 50.0;
      square += values[3][row * 50 + i] * values[3][row * 50 + i] / 50.0;
    }
    EXPECT_NEAR(mean, 0.0, 1e-14);
    EXPECT_NEAR(square, 1.0, 1e-4);
    EXPECT_NEAR(square / (1.0 - square), 1.0 / (1e-5 * values[5][row] * values[5][row]), 1e3);
  }
}

// The vocabulary cut over two ranks gives the loss of the uncut one.
TEST(ReferenceFormula, CrossEntropyOverTwoRanksEqualsOne) {
  const KernelCase whole_case = testing_support::cross_entropy_forward_case({.rows = 5, .columns = 9}, 10);
  const auto whole = run(whole_case);
  const auto part = [&](std::size_t first, std::size_t count) {
    KernelCase made =
        testing_support::cross_entropy_forward_case({.rows = 5,
                                                     .columns = static_cast<std::int64_t>(count),
                                                     .first_column = static_cast<std::int64_t>(first)},
                                                    10);
    for (std::size_t row = 0; row < 5; ++row) {
      for (std::size_t c = 0; c < count; ++c) {
        made.arguments[0].values[row * count + c] = whole_case.arguments[0].values[row * 9 + first + c];
      }
    }
    made.arguments[1].values = whole_case.arguments[1].values;
    return run(made);
  };
  const auto left = part(0, 4);
  const auto right = part(4, 5);
  for (std::size_t row = 0; row < 5; ++row) {
    const double largest = std::max(left[2][row], right[2][row]);
    const double sum =
        left[3][row] * std::exp(left[2][row] - largest) + right[3][row] * std::exp(right[2][row] - largest);
    EXPECT_EQ(largest, whole[2][row]);
    EXPECT_NEAR(sum, whole[3][row], 1e-12);
    EXPECT_EQ(left[4][row] + right[4][row], whole[4][row]);
  }
}

TEST(ReferenceFormula, Gelu) {
  for (const testing_support::KernelGroup& group : testing_support::activation_groups()) {
    if (group.kernel != "activation_forward") continue;
    for (const KernelCase& made : group.cases()) {
      if (made.arguments.size() < 2) continue;
      const auto values = run(made);
      const char kind = made.name[11];
      for (std::size_t i = 0; i < values[0].size(); ++i) {
        const double x = values[0][i];
        double expected = x;
        if (kind == '1')
          expected = x / (1.0 + std::exp(-2.0 * std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x)));
        if (kind == '2') expected = x * 0.5 * (1.0 + std::erf(x / std::sqrt(2.0)));
        EXPECT_NEAR(values[1][i], expected, 1e-14 * (1.0 + std::fabs(x))) << "x " << x;
      }
    }
  }
}

// Three steps of AdamW on a parabola by hand.
TEST(ReferenceFormula, AdamW) {
  double w = 0.5;
  double m = 0.0;
  double v = 0.0;
  KernelCase made = testing_support::adamw_case(1, 1, 0.5, true, 1);
  made.arguments[0].values = {w};
  made.arguments[2].values = {0.0};
  made.arguments[3].values = {0.0};
  for (int step = 1; step <= 3; ++step) {
    const double gradient = 2.0 * w;
    made.arguments[1].values = {gradient};
    made.arguments[5].values = {static_cast<double>(step)};
    const auto after = run(made);
    m = 0.9 * m + 0.1 * gradient * 0.5;
    v = 0.98 * v + 0.02 * gradient * gradient * 0.25;
    const double m_hat = m / (1.0 - std::pow(0.9, step));
    const double v_hat = v / (1.0 - std::pow(0.98, step));
    w -= 0.01 * 0.75 * (m_hat / (std::sqrt(v_hat) + 1e-8) + 0.1 * w);
    EXPECT_NEAR(after[0][0], w, 1e-14);
    EXPECT_NEAR(after[2][0], m, 1e-15);
    EXPECT_NEAR(after[3][0], v, 1e-15);
    EXPECT_EQ(after[7][0], after[0][0]);
    made.arguments[0].values = after[0];
    made.arguments[2].values = after[2];
    made.arguments[3].values = after[3];
  }
}

TEST(ReferenceFormula, ClipFactor) {
  const auto device = make_device({.name = "reference"});
  for (const testing_support::KernelGroup& group : testing_support::sum_groups()) {
    if (group.kernel != "clip_factor") continue;
    for (const KernelCase& made : group.cases()) {
      const auto values = run(made);
      double sum = 0.0;
      for (const double partial : values[0]) sum += partial;
      const double norm = std::sqrt(sum) * values[1][0];
      if (!std::isfinite(norm)) {
        EXPECT_EQ(values[3][0], -1.0) << made.name;
      } else {
        EXPECT_DOUBLE_EQ(values[2][0], norm);
        EXPECT_LE(values[3][0], values[1][0]);
        EXPECT_GT(values[3][0], 0.0);
      }
    }
  }
}

// --- the random numbers' numbering, on every device
// ---------------------------------------------------------------

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const DeviceStatus& status : list_devices()) {
    if (status.available) names.push_back(status.name);
  }
  return names;
}

TEST(RandomNumbering, DropoutDropsWhatPhiloxSays) {
  const testing_support::DropoutShape s{.batch = 3,
                                        .rows = 5,
                                        .hidden = 37,
                                        .probability = 0.35,
                                        .bias = false,
                                        .residual = false,
                                        .first_row = 70,
                                        .first_column = 6};
  KernelCase made = testing_support::dropout_add_case(s, 1);
  made.arguments[0].values.assign(made.arguments[0].values.size(), 1.0);
  const std::vector<double> samples = made.arguments[3].values;
  for (const std::string& name : device_names()) {
    const auto values = run(made, name, DType::float32);
    for (std::int64_t b = 0; b < 3; ++b) {
      for (std::int64_t row = 0; row < 5; ++row) {
        for (std::int64_t column = 0; column < 37; ++column) {
          const std::uint32_t bits =
              dropout_bits(philox_key(9, "dropout:hidden"),
                           static_cast<std::uint64_t>(samples[static_cast<std::size_t>(b)]), 0,
                           static_cast<std::uint32_t>(70 + row), static_cast<std::uint32_t>(6 + column));
          const double expected = bits >= dropout_threshold(0.35) ? 1.0 / 0.65 : 0.0;
          ASSERT_NEAR(values[4][static_cast<std::size_t>((b * 5 + row) * 37 + column)], expected, 1e-6)
              << name;
        }
      }
    }
  }
}

TEST(RandomNumbering, NormalsFollowTheElementNumber) {
  const PhiloxKey key = philox_key(4, "init:numbering");
  const std::int64_t first = (std::int64_t{3} << 33) + 5;
  const std::int64_t row_step = 1000;
  KernelCase made{"numbering", {}, {}};
  made.arguments = {
      {"to", testing_support::Element::float32, {3, 10}, testing_support::Use::output, {}, {}, {}}};
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.initialize_normal(queue, {t[0], first, row_step, key, -1.0, 0.5});
  };
  for (const std::string& name : device_names()) {
    const auto values = run(made, name, DType::float32);
    for (std::int64_t row = 0; row < 3; ++row) {
      for (std::int64_t column = 0; column < 10; ++column) {
        const std::int64_t element = first + row * row_step + column;
        const auto group = static_cast<std::uint64_t>(element / 4);
        const PhiloxCounter words =
            philox({static_cast<std::uint32_t>(group), static_cast<std::uint32_t>(group >> 32), 0, 0}, key);
        const auto normals =
            element % 4 < 2 ? normal_from_bits(words[0], words[1]) : normal_from_bits(words[2], words[3]);
        const double normal = normals[static_cast<std::size_t>(element % 2)];
        EXPECT_EQ(values[0][static_cast<std::size_t>(row * 10 + column)],
                  static_cast<double>(static_cast<float>(-1.0 + 0.5 * normal)))
            << name << " element " << element;
      }
    }
  }
}

}  // namespace
}  // namespace megalith
