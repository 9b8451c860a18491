// Made by tests/parity/megatron_schedules.py from megatron-core 0.16.1; its first lines say how.
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
  std::int64_t microbatches;
};

struct Ramp {
  std::vector<std::int64_t> rampup_batch_size;
  std::int64_t global_batch_size;
  std::int64_t micro_batch_size;
  std::int64_t data_parallel;
  std::int64_t samples;
  std::vector<BatchRow> rows;
};

// Every step of some ramps, up to a number of samples.
inline const std::vector<Ramp> ramps = {
    {{16, 8, 500}, 64, 4, 1, 1200, {{0, 16, 4},    {16, 16, 4},    {32, 16, 4},    {48, 16, 4},
                                    {64, 16, 4},   {80, 16, 4},    {96, 24, 6},    {120, 24, 6},
                                    {144, 24, 6},  {168, 32, 8},   {200, 32, 8},   {232, 32, 8},
                                    {264, 40, 10}, {304, 40, 10},  {344, 48, 12},  {392, 48, 12},
                                    {440, 56, 14}, {496, 56, 14},  {552, 64, 16},  {616, 64, 16},
                                    {680, 64, 16}, {744, 64, 16},  {808, 64, 16},  {872, 64, 16},
                                    {936, 64, 16}, {1000, 64, 16}, {1064, 64, 16}, {1128, 64, 16},
                                    {1192, 64, 16}}},
    {{2, 2, 7},
     8,
     1,
     2,
     60,
     {{0, 2, 1},
      {2, 2, 1},
      {4, 4, 2},
      {8, 8, 4},
      {16, 8, 4},
      {24, 8, 4},
      {32, 8, 4},
      {40, 8, 4},
      {48, 8, 4},
      {56, 8, 4}}},
    {{32, 32, 1000},
     96,
     4,
     8,
     3000,
     {{0, 32, 1},    {32, 32, 1},   {64, 32, 1},   {96, 32, 1},   {128, 32, 1},  {160, 32, 1},  {192, 32, 1},
      {224, 32, 1},  {256, 32, 1},  {288, 32, 1},  {320, 32, 1},  {352, 32, 1},  {384, 32, 1},  {416, 32, 1},
      {448, 32, 1},  {480, 32, 1},  {512, 64, 2},  {576, 64, 2},  {640, 64, 2},  {704, 64, 2},  {768, 64, 2},
      {832, 64, 2},  {896, 64, 2},  {960, 64, 2},  {1024, 96, 3}, {1120, 96, 3}, {1216, 96, 3}, {1312, 96, 3},
      {1408, 96, 3}, {1504, 96, 3}, {1600, 96, 3}, {1696, 96, 3}, {1792, 96, 3}, {1888, 96, 3}, {1984, 96, 3},
      {2080, 96, 3}, {2176, 96, 3}, {2272, 96, 3}, {2368, 96, 3}, {2464, 96, 3}, {2560, 96, 3}, {2656, 96, 3},
      {2752, 96, 3}, {2848, 96, 3}, {2944, 96, 3}}},
    {{3, 1, 100}, 10, 1, 1, 200, {{0, 3, 3},     {3, 3, 3},     {6, 3, 3},     {9, 3, 3},     {12, 3, 3},
                                  {15, 4, 4},    {19, 4, 4},    {23, 4, 4},    {27, 4, 4},    {31, 5, 5},
                                  {36, 5, 5},    {41, 5, 5},    {46, 6, 6},    {52, 6, 6},    {58, 7, 7},
                                  {65, 7, 7},    {72, 8, 8},    {80, 8, 8},    {88, 9, 9},    {97, 9, 9},
                                  {106, 10, 10}, {116, 10, 10}, {126, 10, 10}, {136, 10, 10}, {146, 10, 10},
                                  {156, 10, 10}, {166, 10, 10}, {176, 10, 10}, {186, 10, 10}, {196, 10, 10}}},
};

}  // namespace megalith::testing
