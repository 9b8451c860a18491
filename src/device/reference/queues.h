// The reference device's queues. Immediate ones run each piece of work in the call that enqueues it; strict
// ones keep it and run it late and out of step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "device/device.h"

namespace megalith::reference {

class Queues {
 public:
  using Work = std::function<void()>;

  Queues() = default;
  virtual ~Queues() = default;
  Queues(const Queues&) = delete;
  Queues& operator=(const Queues&) = delete;

  virtual void enqueue(QueueKind queue, Work work) = 0;
  virtual Event record(QueueKind queue) = 0;
  virtual void wait(QueueKind queue, const Event& event) = 0;
  virtual void synchronize(QueueKind queue) = 0;
  /// Runs everything on all queues.
  virtual void drain() = 0;
};

std::unique_ptr<Queues> make_immediate_queues();

/// Work waits until somebody synchronizes. Then pieces run one by one, each from a queue that is free to go
/// on: chosen by `seed`, either at random or with a constant preference (for one queue, for the one
/// synchronized, or against it), and only until what was asked for is done. Work still waiting at destruction
/// is dropped.
std::unique_ptr<Queues> make_strict_queues(std::uint64_t seed);

}  // namespace megalith::reference
