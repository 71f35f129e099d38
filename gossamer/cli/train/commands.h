#pragma once
/// The commands behind `gossamer train`, `demo`, `probe` and `translate`; argv[0] is the command's
/// name.

namespace gossamer {

int train_command(int argc, char** argv);
int demo_command(int argc, char** argv);
int probe_command(int argc, char** argv);
int translate_command(int argc, char** argv);

}  // namespace gossamer
