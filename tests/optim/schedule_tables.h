// Made by: /usr/bin/python3 tests/optim/schedule_tables.py > tests/optim/schedule_tables.h
#pragma once

#include <cstdint>
#include <vector>

namespace megalith::testing {

struct RateRow {
  const char* style;
  const char* wsd_style;
  std::int64_t steps;
  double rate;
};

// lr 6e-4, min_lr 6e-5, lr_warmup_init 1e-6, warm-up 300, decay 2000, WSD's decay 400.
inline const std::vector<RateRow> rate_rows = {
    {"constant", "exponential", 0, 1e-06},
    {"constant", "exponential", 1, 2.996666666666666e-06},
    {"constant", "exponential", 150, 0.0003005},
    {"constant", "exponential", 300, 0.0006},
    {"constant", "exponential", 301, 0.0006},
    {"constant", "exponential", 1000, 0.0006},
    {"constant", "exponential", 1600, 0.0006},
    {"constant", "exponential", 1601, 0.0006},
    {"constant", "exponential", 1900, 0.0006},
    {"constant", "exponential", 2000, 0.0006},
    {"constant", "exponential", 2001, 0.0006},
    {"constant", "exponential", 5000, 0.0006},
    {"linear", "exponential", 0, 1e-06},
    {"linear", "exponential", 1, 2.996666666666666e-06},
    {"linear", "exponential", 150, 0.0003005},
    {"linear", "exponential", 300, 0.0006},
    {"linear", "exponential", 301, 0.0005996823529411764},
    {"linear", "exponential", 1000, 0.0003776470588235294},
    {"linear", "exponential", 1600, 0.00018705882352941178},
    {"linear", "exponential", 1601, 0.00018674117647058823},
    {"linear", "exponential", 1900, 9.176470588235295e-05},
    {"linear", "exponential", 2000, 6e-05},
    {"linear", "exponential", 2001, 6e-05},
    {"linear", "exponential", 5000, 6e-05},
    {"cosine", "exponential", 0, 1e-06},
    {"cosine", "exponential", 1, 2.996666666666666e-06},
    {"cosine", "exponential", 150, 0.0003005},
    {"cosine", "exponential", 300, 0.0006},
    {"cosine", "exponential", 301, 0.0005999995389632473},
    {"cosine", "exponential", 1000, 0.00040388900731946236},
    {"cosine", "exponential", 1600, 0.00013046759235042207},
    {"cosine", "exponential", 1601, 0.00013013178685972418},
    {"cosine", "exponential", 1900, 6.459726308534652e-05},
    {"cosine", "exponential", 2000, 6e-05},
    {"cosine", "exponential", 2001, 6e-05},
    {"cosine", "exponential", 5000, 6e-05},
    {"inverse-square-root", "exponential", 0, 1e-06},
    {"inverse-square-root", "exponential", 1, 2.996666666666666e-06},
    {"inverse-square-root", "exponential", 150, 0.0003005},
    {"inverse-square-root", "exponential", 300, 0.0006},
    {"inverse-square-root", "exponential", 301, 0.0005990024930757496},
    {"inverse-square-root", "exponential", 1000, 0.00032863353450309965},
    {"inverse-square-root", "exponential", 1600, 0.00025980762113533157},
    {"inverse-square-root", "exponential", 1601, 0.0002597264692916729},
    {"inverse-square-root", "exponential", 1900, 0.00023841582427170787},
    {"inverse-square-root", "exponential", 2000, 0.000232379000772445},
    {"inverse-square-root", "exponential", 2001, 6e-05},
    {"inverse-square-root", "exponential", 5000, 6e-05},
    {"WSD", "exponential", 0, 1e-06},
    {"WSD", "exponential", 1, 2.996666666666666e-06},
    {"WSD", "exponential", 150, 0.0003005},
    {"WSD", "exponential", 300, 0.0006},
    {"WSD", "exponential", 301, 0.0006},
    {"WSD", "exponential", 1000, 0.0006},
    {"WSD", "exponential", 1600, 0.0006},
    {"WSD", "exponential", 1601, 0.0005981301232051839},
    {"WSD", "exponential", 1900, 0.00016217184210146933},
    {"WSD", "exponential", 2000, 6e-05},
    {"WSD", "exponential", 2001, 6e-05},
    {"WSD", "exponential", 5000, 6e-05},
    {"WSD", "linear", 0, 1e-06},
    {"WSD", "linear", 1, 2.996666666666666e-06},
    {"WSD", "linear", 150, 0.0003005},
    {"WSD", "linear", 300, 0.0006},
    {"WSD", "linear", 301, 0.0006},
    {"WSD", "linear", 1000, 0.0006},
    {"WSD", "linear", 1600, 0.0006},
    {"WSD", "linear", 1601, 0.0005986499999999999},
    {"WSD", "linear", 1900, 0.00019499999999999997},
    {"WSD", "linear", 2000, 6e-05},
    {"WSD", "linear", 2001, 6e-05},
    {"WSD", "linear", 5000, 6e-05},
    {"WSD", "cosine", 0, 1e-06},
    {"WSD", "cosine", 1, 2.996666666666666e-06},
    {"WSD", "cosine", 150, 0.0003005},
    {"WSD", "cosine", 300, 0.0006},
    {"WSD", "cosine", 301, 0.0006},
    {"WSD", "cosine", 1000, 0.0006},
    {"WSD", "cosine", 1600, 0.0006},
    {"WSD", "cosine", 1601, 0.0005999916725640932},
    {"WSD", "cosine", 1900, 0.00013908116907963218},
    {"WSD", "cosine", 2000, 6e-05},
    {"WSD", "cosine", 2001, 6e-05},
    {"WSD", "cosine", 5000, 6e-05},
    {"WSD", "minus_sqrt", 0, 1e-06},
    {"WSD", "minus_sqrt", 1, 2.996666666666666e-06},
    {"WSD", "minus_sqrt", 150, 0.0003005},
    {"WSD", "minus_sqrt", 300, 0.0006},
    {"WSD", "minus_sqrt", 301, 0.0006},
    {"WSD", "minus_sqrt", 1000, 0.0006},
    {"WSD", "minus_sqrt", 1600, 0.0006},
    {"WSD", "minus_sqrt", 1601, 0.0005729999999999999},
    {"WSD", "minus_sqrt", 1900, 0.00013234628195640314},
    {"WSD", "minus_sqrt", 2000, 6e-05},
    {"WSD", "minus_sqrt", 2001, 6e-05},
    {"WSD", "minus_sqrt", 5000, 6e-05},
};

struct DecayRow {
  const char* style;
  std::int64_t steps;
  double decay;
};

// start_weight_decay 0.01, end_weight_decay 0.1 over 2000 steps.
inline const std::vector<DecayRow> decay_rows = {
    {"linear", 0, 0.01},
    {"linear", 1, 0.010045},
    {"linear", 700, 0.0415},
    {"linear", 1999, 0.09995500000000002},
    {"linear", 2000, 0.1},
    {"linear", 2001, 0.1},
    {"cosine", 0, 0.01},
    {"cosine", 1, 0.010000055516513342},
    {"cosine", 700, 0.034570427511720396},
    {"cosine", 1999, 0.09999994448348666},
    {"cosine", 2000, 0.1},
    {"cosine", 2001, 0.1},
};

struct BatchRow {
  std::int64_t consumed;
  std::int64_t size;
};

// rampup_batch_size 16 8 500, global_batch_size 64, 1200 samples.
inline const std::vector<BatchRow> batch_rows = {
    {0, 16},   {16, 16},   {32, 16},   {48, 16},   {64, 16},   {80, 16},  {96, 24},  {120, 24},
    {144, 24}, {168, 32},  {200, 32},  {232, 32},  {264, 40},  {304, 40}, {344, 48}, {392, 48},
    {440, 56}, {496, 56},  {552, 64},  {616, 64},  {680, 64},  {744, 64}, {808, 64}, {872, 64},
    {936, 64}, {1000, 64}, {1064, 64}, {1128, 64}, {1192, 64},
};

}  // namespace megalith::testing
