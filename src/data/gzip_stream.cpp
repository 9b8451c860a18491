#include <zlib.h>

#include <vector>

#include "core/error.h"
#include "data/byte_stream.h"

namespace megalith {
namespace {

class GzipStream : public ByteStream {
 public:
  GzipStream(std::unique_ptr<ByteStream> source, const std::string& path)
      : source_(std::move(source)), path_(path), input_(std::size_t{1} << 17) {
    // 15 bits of window, + 16: gzip's header and checksum.
    if (::inflateInit2(&state_, 15 + 16) != Z_OK) fail(ErrorKind::environment, path_, "zlib cannot start");
  }
  ~GzipStream() override { ::inflateEnd(&state_); }

  std::size_t read(std::span<char> buffer) override {
    state_.next_out = reinterpret_cast<Bytef*>(buffer.data());
    state_.avail_out = static_cast<uInt>(buffer.size());
    while (state_.avail_out == buffer.size()) {
      if (state_.avail_in == 0) {
        const std::size_t got = source_->read(input_);
        if (got == 0) {
          if (!between_members_)
            fail(ErrorKind::input, path_, "the gzip data ends too early; the file is truncated");
          return 0;
        }
        state_.next_in = reinterpret_cast<Bytef*>(input_.data());
        state_.avail_in = static_cast<uInt>(got);
      }
      if (between_members_) {
        // Padding with zeros after the last member is common (tapes, block devices).
        if (*state_.next_in == 0) {
          ++state_.next_in;
          --state_.avail_in;
          continue;
        }
        if (::inflateReset(&state_) != Z_OK) fail(ErrorKind::internal, path_, "zlib cannot restart");
        between_members_ = false;
      }
      const int code = ::inflate(&state_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        between_members_ = true;
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        fail(ErrorKind::input, path_, "the gzip data is damaged near byte {}: {}",
             source_->consumed() - state_.avail_in, state_.msg == nullptr ? "unknown reason" : state_.msg);
      }
    }
    return buffer.size() - state_.avail_out;
  }
  std::uint64_t consumed() const override { return source_->consumed() - state_.avail_in; }

 private:
  std::unique_ptr<ByteStream> source_;
  std::string path_;
  std::vector<char> input_;
  z_stream state_{};
  bool between_members_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> make_gzip_stream(std::unique_ptr<ByteStream> source, const std::string& path) {
  return std::make_unique<GzipStream>(std::move(source), path);
}

}  // namespace megalith
