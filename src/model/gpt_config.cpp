#include "model/gpt_config.h"

#include <algorithm>

namespace megalith {
namespace {

void require_positive(std::int64_t value, std::string_view key) {
  if (value <= 0) fail(ErrorKind::usage, key, "is {}; a model needs at least 1", value);
}

void require_probability(double value, std::string_view key) {
  if (!(value >= 0.0 && value < 1.0)) {
    fail(ErrorKind::usage, key, "is {}; a dropout probability lies in [0, 1)", value);
  }
}

}  // namespace

void GptConfig::check() const {
  require_positive(layers, "num_layers");
  require_positive(hidden, "hidden_size");
  require_positive(ffn, "ffn_hidden_size");
  require_positive(heads, "num_attention_heads");
  require_positive(head_size, "kv_channels");
  require_positive(sequence, "seq_length");
  require_positive(vocabulary, "vocab_size");
  if (max_positions < sequence) {
    fail(ErrorKind::usage, "max_position_embeddings",
         "is {}, but seq_length is {}; give at least as many positions", max_positions, sequence);
  }
  if (padded_vocabulary < vocabulary) {
    fail(ErrorKind::usage, "make_vocab_size_divisible_by", "gives {} rows for a vocabulary of {}",
         padded_vocabulary, vocabulary);
  }
  require_probability(hidden_dropout, "hidden_dropout");
  require_probability(attention_dropout, "attention_dropout");
  if (!(init_std >= 0.0)) fail(ErrorKind::usage, "init_method_std", "is {}; expected 0 or more", init_std);
  if (!(norm_epsilon > 0.0))
    fail(ErrorKind::usage, "norm_epsilon", "is {}; expected more than 0", norm_epsilon);
  if (activation == Activation::none)
    fail(ErrorKind::usage, "activation", "is none; choose gelu_tanh or gelu_erf");
  if (compute != DType::float32 && compute != DType::float64 && compute != DType::bfloat16) {
    fail(ErrorKind::usage, "precision", "{} is no compute type; choose float32, bfloat16 or float64",
         name_of(compute));
  }
  if (recompute == RecomputeGranularity::full && recompute_layers < 1) {
    fail(ErrorKind::usage, "recompute_num_layers", "is {}; full recomputation needs at least 1",
         recompute_layers);
  }
}

GptConfig gpt_config(const TrainOptions& options, std::int64_t vocabulary) {
  GptConfig config;
  config.layers = options.num_layers;
  config.hidden = options.hidden_size;
  config.ffn = options.ffn_hidden_size > 0 ? options.ffn_hidden_size : 4 * options.hidden_size;
  config.heads = options.num_attention_heads;
  if (options.kv_channels > 0) {
    config.head_size = options.kv_channels;
  } else {
    require_positive(options.num_attention_heads, "num_attention_heads");
    if (options.hidden_size % options.num_attention_heads != 0) {
      fail(ErrorKind::usage, "num_attention_heads", "{} heads do not divide hidden_size {}; set kv_channels",
           options.num_attention_heads, options.hidden_size);
    }
    config.head_size = options.hidden_size / options.num_attention_heads;
  }
  config.sequence = options.seq_length;
  config.max_positions = std::max(options.max_position_embeddings, options.seq_length);
  if (options.max_position_embeddings > 0) config.max_positions = options.max_position_embeddings;
  config.vocabulary = options.vocab_size > 0 ? options.vocab_size : vocabulary;
  require_positive(config.vocabulary, "vocab_size");
  config.padded_vocabulary = pad_vocabulary(config.vocabulary, options.make_vocab_size_divisible_by);
  if (options.megatron_padded_softmax) config.vocabulary = config.padded_vocabulary;
  config.hidden_dropout = options.hidden_dropout;
  config.attention_dropout = options.attention_dropout;
  config.init_std = options.init_method_std;
  config.norm_epsilon = options.norm_epsilon > 0 ? options.norm_epsilon : 1e-5;
  config.tied = !options.untie_embeddings_and_output_weights;
  if (options.activation == "gelu_erf") {
    config.activation = Activation::gelu_erf;
  } else if (options.activation.empty() || options.activation == "gelu_tanh") {
    config.activation = Activation::gelu_tanh;
  } else {
    fail(ErrorKind::usage, "activation", "\"{}\" is unknown; choose gelu_tanh or gelu_erf",
         options.activation);
  }
  if (options.fp64) {
    config.compute = DType::float64;
  } else if (options.bf16) {
    config.compute = DType::bfloat16;
  }
  if (options.recompute_granularity == "full") {
    config.recompute = RecomputeGranularity::full;
    if (options.recompute_method == "block") config.recompute_method = RecomputeMethod::block;
    config.recompute_layers = std::max<std::int64_t>(options.recompute_num_layers, 1);
  } else if (options.recompute_granularity == "selective" || options.recompute_activations) {
    config.recompute = RecomputeGranularity::selective;
  }
  config.seed = static_cast<std::uint64_t>(options.seed);
  config.check();
  return config;
}

std::int64_t pad_vocabulary(std::int64_t vocabulary, std::int64_t divisible_by) {
  const std::int64_t multiple = std::max<std::int64_t>(divisible_by, 1);
  return (vocabulary + multiple - 1) / multiple * multiple;
}

double training_flops(const GptConfig& config, std::int64_t samples) {
  return 3.0 * forward_flops_per_token(config) * static_cast<double>(samples) *
         static_cast<double>(config.sequence);
}

double forward_flops_per_token(const GptConfig& config) {
  const auto hidden = static_cast<double>(config.hidden);
  const auto width = static_cast<double>(config.attention_width());
  const double layer = hidden * 4.0 * width + 2.0 * hidden * static_cast<double>(config.ffn) +
                       width * static_cast<double>(config.sequence);
  return 2.0 * (static_cast<double>(config.layers) * layer + hidden * static_cast<double>(config.vocabulary));
}

}  // namespace megalith
