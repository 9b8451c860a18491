// GELU (Hendrycks and Gimpel 2016), exact and in its tanh approximation, and their derivatives.
#pragma once

#include <cmath>

#include "device/device.h"

namespace megalith::reference {

inline constexpr double sqrt_2_over_pi = 0.79788456080286535588;
inline constexpr double inverse_sqrt_2 = 0.70710678118654752440;
inline constexpr double inverse_sqrt_2_pi = 0.39894228040143267794;
inline constexpr double gelu_cubic = 0.044715;

inline double activate(Activation kind, double x) {
  switch (kind) {
    case Activation::none:
      return x;
    case Activation::gelu_tanh:
      return 0.5 * x * (1.0 + std::tanh(sqrt_2_over_pi * (x + gelu_cubic * x * x * x)));
    case Activation::gelu_erf:
      return 0.5 * x * std::erfc(-x * inverse_sqrt_2);
  }
  return x;
}

inline double activation_slope(Activation kind, double x) {
  switch (kind) {
    case Activation::none:
      return 1.0;
    case Activation::gelu_tanh: {
      const double t = std::tanh(sqrt_2_over_pi * (x + gelu_cubic * x * x * x));
      return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * sqrt_2_over_pi * (1.0 + 3.0 * gelu_cubic * x * x);
    }
    case Activation::gelu_erf:
      return 0.5 * std::erfc(-x * inverse_sqrt_2) + x * inverse_sqrt_2_pi * std::exp(-0.5 * x * x);
  }
  return 1.0;
}

}  // namespace megalith::reference
