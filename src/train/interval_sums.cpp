#include "train/interval_sums.h"

namespace megalith {
namespace {

std::int64_t whole(const nlohmann::json& json, const char* name) {
  const nlohmann::json value = json.is_object() ? json.value(name, nlohmann::json()) : nlohmann::json();
  return value.is_number_integer() ? value.get<std::int64_t>() : 0;
}

}  // namespace

nlohmann::json IntervalSums::to_json() const {
  return {{"loss_sum", loss_sum},
          {"loss_steps", loss_steps},
          {"steps", steps},
          {"skipped", skipped},
          {"nans", nans}};
}

IntervalSums IntervalSums::from_json(const nlohmann::json& json) {
  IntervalSums sums;
  const nlohmann::json loss = json.is_object() ? json.value("loss_sum", nlohmann::json()) : nlohmann::json();
  if (loss.is_number()) sums.loss_sum = loss.get<double>();
  sums.loss_steps = whole(json, "loss_steps");
  sums.steps = whole(json, "steps");
  sums.skipped = whole(json, "skipped");
  sums.nans = whole(json, "nans");
  return sums;
}

}  // namespace megalith
