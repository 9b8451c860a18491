// embedding_forward and embedding_backward.
#include "tests/device/support/cases.h"

namespace megalith::testing_support {

KernelCase embedding_forward_case(std::int64_t tokens, std::int64_t rows, std::int64_t hidden,
                                  std::int64_t first_row, bool accumulate, std::uint64_t seed) {
  KernelCase made{format("embedding {} tokens of {}x{} from {}{}", tokens, rows, hidden, first_row,
                         accumulate ? " accumulate" : ""),
                  {},
                  {}};
  made.arguments = {// Some tokens belong to other ranks on either side.
                    {"tokens",
                     Element::int32,
                     {tokens},
                     Use::input,
                     integers({tokens}, 0, 2 * first_row + rows, seed),
                     {},
                     {}},
                    {"table",
                     Element::compute,
                     {rows, hidden},
                     Use::input,
                     uniform({rows, hidden}, -1, 1, seed + 1),
                     {},
                     {}},
                    {"rows",
                     Element::compute,
                     {tokens, hidden},
                     accumulate ? Use::in_out : Use::output,
                     accumulate ? uniform({tokens, hidden}, -1, 1, seed + 2) : std::vector<double>{},
                     accumulate ? Bound::sum_of(2, 2) : Bound::exactly(),
                     {}}};
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.embedding_forward(queue, {t[0], t[1], t[2], first_row, accumulate});
  };
  return made;
}

KernelCase embedding_backward_case(std::int64_t tokens, std::int64_t rows, std::int64_t hidden,
                                   std::int64_t first_row, std::uint64_t seed) {
  KernelCase made{
      format("embedding backward {} tokens of {}x{} from {}", tokens, rows, hidden, first_row), {}, {}};
  made.arguments = {{"tokens",
                     Element::int32,
                     {tokens},
                     Use::input,
                     integers({tokens}, 0, 2 * first_row + rows, seed),
                     {},
                     {}},
                    {"rows_grad",
                     Element::compute,
                     {tokens, hidden},
                     Use::input,
                     uniform({tokens, hidden}, -1, 1, seed + 1),
                     {},
                     {}},
                    {"table_grad",
                     Element::sum,
                     {rows, hidden},
                     Use::in_out,
                     uniform({rows, hidden}, -1, 1, seed + 2),
                     Bound::sum_of(static_cast<double>(tokens) + 2.0, 1.0),
                     {}}};
  made.enqueue = [=](Device& device, QueueKind queue, std::span<const Tensor> t) {
    device.embedding_backward(queue, {t[0], t[1], t[2], first_row});
  };
  return made;
}

namespace {

std::vector<KernelCase> forward_cases() {
  std::vector<KernelCase> cases;
  for (const bool accumulate : {false, true}) {
    cases.push_back(embedding_forward_case(1, 1, 1, 0, accumulate, 6000));
    cases.push_back(embedding_forward_case(0, 5, 7, 0, accumulate, 6010));
    cases.push_back(embedding_forward_case(37, 11, 13, 0, accumulate, 6020));
    cases.push_back(embedding_forward_case(101, 29, 67, 23, accumulate, 6030));
    cases.push_back(embedding_forward_case(9, 3, 1031, 2, accumulate, 6040));
  }
  return cases;
}

std::vector<KernelCase> backward_cases() {
  return {embedding_backward_case(1, 1, 1, 0, 6100), embedding_backward_case(0, 5, 7, 0, 6110),
          embedding_backward_case(203, 11, 13, 0, 6120), embedding_backward_case(101, 29, 67, 23, 6130),
          embedding_backward_case(40, 3, 1031, 2, 6140)};
}

}  // namespace

std::vector<KernelGroup> embedding_groups() {
  return {{"embedding_forward", forward_cases}, {"embedding_backward", backward_cases}};
}

}  // namespace megalith::testing_support
