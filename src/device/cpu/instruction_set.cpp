#include "device/cpu/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "device/cpu/instruction_set.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace megalith::HWY_NAMESPACE {

std::string target_name() {
  return hwy::TargetName(HWY_TARGET);
}

}  // namespace megalith::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace megalith {

HWY_EXPORT(target_name);

std::string instruction_set() {
  return HWY_DYNAMIC_DISPATCH(target_name)();
}

}  // namespace megalith
#endif
