#include "device/reference/queues.h"

namespace megalith::reference {
namespace {

// Every event has passed when it is recorded, so there is nothing to number or to wait for.
class ImmediateQueues final : public Queues {
 public:
  void enqueue(QueueKind, Work work) override { work(); }
  Event record(QueueKind queue) override { return {queue, 0}; }
  void wait(QueueKind, const Event&) override {}
  void synchronize(QueueKind) override {}
  void drain() override {}
};

}  // namespace

std::unique_ptr<Queues> make_immediate_queues() {
  return std::make_unique<ImmediateQueues>();
}

}  // namespace megalith::reference
