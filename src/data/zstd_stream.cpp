#include <zstd.h>

#include <vector>

#include "core/error.h"
#include "data/byte_stream.h"

namespace megalith {
namespace {

class ZstdStream : public ByteStream {
 public:
  ZstdStream(std::unique_ptr<ByteStream> source, const std::string& path)
      : source_(std::move(source)),
        path_(path),
        input_(::ZSTD_DStreamInSize()),
        state_(::ZSTD_createDStream()) {
    if (!state_) fail(ErrorKind::environment, path_, "zstd cannot start: out of memory");
    // Files made with --long=31 need up to 2 GiB; zstd's own limit of 128 MiB is kept, so that a file cannot
    // ask for more.
  }

  std::size_t read(std::span<char> buffer) override {
    ZSTD_outBuffer out{buffer.data(), buffer.size(), 0};
    while (out.pos == 0) {
      if (place_.pos == place_.size && !flushing_) {
        place_ = {input_.data(), source_->read(input_), 0};
        if (place_.size == 0) {
          if (!between_frames_)
            fail(ErrorKind::input, path_, "the zstd data ends too early; the file is truncated");
          return 0;
        }
      }
      const std::size_t code = ::ZSTD_decompressStream(state_.get(), &out, &place_);
      if (::ZSTD_isError(code) != 0) {
        fail(ErrorKind::input, path_, "the zstd data is damaged near byte {}: {}", consumed(),
             ::ZSTD_getErrorName(code));
      }
      between_frames_ = code == 0;
      flushing_ = out.pos == out.size;
    }
    return out.pos;
  }
  std::uint64_t consumed() const override { return source_->consumed() - (place_.size - place_.pos); }

 private:
  struct Free {
    void operator()(ZSTD_DStream* state) const { ::ZSTD_freeDStream(state); }
  };

  std::unique_ptr<ByteStream> source_;
  std::string path_;
  std::vector<char> input_;
  std::unique_ptr<ZSTD_DStream, Free> state_;
  ZSTD_inBuffer place_{nullptr, 0, 0};
  bool between_frames_ = false;
  bool flushing_ = false;  ///< the output was full, so more may come without new input
};

}  // namespace

std::unique_ptr<ByteStream> make_zstd_stream(std::unique_ptr<ByteStream> source, const std::string& path) {
  return std::make_unique<ZstdStream>(std::move(source), path);
}

}  // namespace megalith
