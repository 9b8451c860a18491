#include "core/philox.h"

#include <cmath>

namespace megalith {
namespace {

// Horner's rule, highest power first.
template <std::size_t Count>
double polynomial(const std::array<double, Count>& coefficients, double x) {
  double sum = coefficients[0];
  for (std::size_t i = 1; i < Count; ++i) sum = sum * x + coefficients[i];
  return sum;
}

// ln(x) for x in (0, 1]: split off the exponent, then the atanh series in s = (m-1)/(m+1), |s| <= 0.172.
double natural_log(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  auto exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  double mantissa = std::bit_cast<double>((bits & 0x000fffffffffffffULL) | 0x3ff0000000000000ULL);
  if (mantissa > 1.4142135623730951) {
    mantissa = mantissa * 0.5;
    exponent += 1;
  }
  const double s = (mantissa - 1.0) / (mantissa + 1.0);
  const double z = s * s;
  const double series = polynomial(natural_log_series, z);
  return (s + s) * series + static_cast<double>(exponent) * 0.6931471805599453;
}

// sin and cos of 2*pi*turn for turn in [0, 1): reduced to an eighth of a turn, then Taylor series.
std::array<double, 2> sin_cos_of_turn(double turn) {
  const double eighths = turn * 8.0;
  const int octant = static_cast<int>(eighths);
  double rest = eighths - static_cast<double>(octant);
  if (octant % 2 == 1) rest = 1.0 - rest;
  const double angle = rest * 0.7853981633974483;
  const double z = angle * angle;
  double s = polynomial(sine_series, z) * angle;
  double c = polynomial(cosine_series, z);
  // Octants 1, 2, 5, 6 exchange the two; signs follow the quadrant.
  if (octant == 1 || octant == 2 || octant == 5 || octant == 6) {
    const double swap = s;
    s = c;
    c = swap;
  }
  if (octant >= 4) s = -s;
  if (octant >= 2 && octant < 6) c = -c;
  return {s, c};
}

}  // namespace

PhiloxKey philox_key(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char letter : name) {
    hash ^= static_cast<unsigned char>(letter);
    hash *= 0x100000001b3ULL;
  }
  std::uint64_t mixed = hash + 0x9e3779b97f4a7c15ULL * (seed + 1);
  mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
  mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
  mixed ^= mixed >> 31;
  return {static_cast<std::uint32_t>(mixed), static_cast<std::uint32_t>(mixed >> 32)};
}

std::array<double, 2> normal_from_bits(std::uint32_t first, std::uint32_t second) {
  const double uniform = (static_cast<double>(first) + 0.5) * 0x1p-32;
  const double radius = std::sqrt(-2.0 * natural_log(uniform));
  const auto [sine, cosine] = sin_cos_of_turn(static_cast<double>(second) * 0x1p-32);
  return {radius * cosine, radius * sine};
}

}  // namespace megalith
