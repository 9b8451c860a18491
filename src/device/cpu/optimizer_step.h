// The numbers of one optimizer step, computed once in float64 and rounded to what the vector loops use.
#pragma once

namespace megalith {

struct AdamWElements {
  float* weights;
  const float* gradient;
  float* exp_avg;
  float* exp_avg_sq;
};

struct AdamWStep {
  float gradient_scale;
  float beta1;
  float beta2;
  float rest1;                        ///< 1 - beta1
  float rest2;                        ///< 1 - beta2
  float inverse_root_of_correction2;  ///< 1 / sqrt(1 - beta2^t)
  float epsilon;
  float step_size;  ///< learning rate / (1 - beta1^t)
  float decay;      ///< learning rate * weight decay
};

struct SgdStep {
  float gradient_scale;
  float rate;
  float momentum;
  float weight_decay;
};

}  // namespace megalith
