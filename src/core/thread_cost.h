// What a thread costs the others: its processor time so far, and its priority.
#pragma once

namespace megalith {

/// Processor time of the calling thread, in seconds.
double thread_processor_seconds();

/// Lets the other threads of this machine go first where processors are short: adds `steps` to the calling
/// thread's nice value. Does nothing where the system cannot do that for one thread.
void lower_thread_priority(int steps);

}  // namespace megalith
