// A kernel case: one call of one kernel with its inputs, and the bounds its outputs must keep. Tests run
// every case on every device and compare with the float64 reference device. Nothing here depends on a test
// framework.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"

namespace megalith::testing_support {

/// Type of an argument: fixed, or following the compute type the case is run in.
enum class Element : std::uint8_t {
  compute,
  sum,
  float64,
  float32,
  bfloat16,
  float16,
  int64,
  int32,
  uint16,
  uint8
};

DType resolve(Element element, DType compute);

/// Unit roundoff: half the distance from 1 to the next number.
double unit_roundoff(DType dtype);

/// How far an output may be from the float64 reference, which gets the same (rounded) inputs:
///   |error| <= ulps * u(output) * |reference| + relative * u(sum type) * |reference|
///            + terms * u(sum type) * magnitude + roundings * u(compute type) * magnitude
/// `terms` is the length of the longest sum (plus a few for functions), `magnitude` the size of its terms,
/// `roundings` how often a value may pass through the compute type on the way. The default allows the
/// rounding of the result alone; exactly() allows nothing.
struct Bound {
  double ulps = 1.01;
  double relative = 0.0;
  double terms = 0.0;
  double magnitude = 1.0;
  double roundings = 0.0;

  static Bound exactly() { return {.ulps = 0.0}; }
  static Bound sum_of(double terms, double magnitude, double roundings = 0.0) {
    return {.terms = terms, .magnitude = magnitude, .roundings = roundings};
  }
  double allowed(double reference, DType output, DType compute) const;
};

enum class Use : std::uint8_t { input, output, in_out, scratch };

struct Argument {
  std::string name;
  Element element = Element::compute;
  Shape shape;
  Use use = Use::input;
  std::vector<double> values = {};  ///< of inputs and in_outs, row-major; rounded to the type when placed
  Bound bound = {};                 ///< of outputs and in_outs
  /// The tensor is the front corner of storage of this shape (same rank, nowhere smaller): a strided view.
  /// The rest must stay untouched.
  Shape storage = {};
};

struct KernelCase {
  std::string name;
  std::vector<Argument> arguments;
  /// Calls the kernel; tensors are in the order of `arguments`.
  std::function<void(Device&, QueueKind, std::span<const Tensor>)> enqueue;
};

/// The cases of one kernel. Built only when asked for, so that listing tests costs nothing.
struct KernelGroup {
  std::string kernel;
  std::function<std::vector<KernelCase>()> cases;
};

/// Rounds each value to `dtype` and back.
std::vector<double> rounded(std::vector<double> values, DType dtype);

/// Numbers that depend on the seed alone.
std::vector<double> uniform(const Shape& shape, double low, double high, std::uint64_t seed);
std::vector<double> integers(const Shape& shape, std::int64_t low, std::int64_t high, std::uint64_t seed);

/// A case's arguments in a device's memory. Outputs, scratch, and all storage around tensors start as NaN
/// (all bits set). Every tensor begins `misalignment` elements past a 64-byte boundary.
class PlacedCase {
 public:
  PlacedCase(const KernelCase& kernel_case, Device& device, DType compute, std::int64_t misalignment);

  std::span<const Tensor> tensors() const { return tensors_; }
  /// Enqueues the kernel once on the compute queue.
  void enqueue();
  /// Waits, and reads everything back.
  void finish();
  /// After finish(): the values of an argument.
  const std::vector<double>& values(std::size_t argument) const { return results_[argument]; }
  /// After finish(): which inputs or surroundings were written to; empty where none.
  std::string damage() const { return damage_; }

 private:
  struct Place {
    DeviceMemory memory;
    std::vector<std::byte> before;
    std::size_t start = 0;  ///< of the tensor, in bytes
  };
  const KernelCase& case_;
  Device& device_;
  std::vector<Place> places_;
  std::vector<Tensor> tensors_;
  std::vector<std::vector<double>> results_;
  std::string damage_;
};

}  // namespace megalith::testing_support
