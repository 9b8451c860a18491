#include "core/dtype.h"

#include <array>
#include <utility>

#include "core/error.h"

namespace megalith {
namespace {
constexpr std::array<std::pair<DType, std::string_view>, 8> names{{
    {DType::float64, "float64"},
    {DType::float32, "float32"},
    {DType::bfloat16, "bfloat16"},
    {DType::float16, "float16"},
    {DType::int64, "int64"},
    {DType::int32, "int32"},
    {DType::uint16, "uint16"},
    {DType::uint8, "uint8"},
}};
}  // namespace

std::string_view name_of(DType dtype) {
  for (const auto& [value, name] : names) {
    if (value == dtype) return name;
  }
  return "unknown";
}

DType dtype_from_name(std::string_view name) {
  for (const auto& [value, known] : names) {
    if (known == name) return value;
  }
  fail(ErrorKind::usage, "dtype",
       "\"{}\" is no element type; known: float64, float32, bfloat16, float16, int64, "
       "int32, uint16, uint8",
       name);
}

}  // namespace megalith
