#pragma once
/// The subcommands of `gossamer theory`, each in its own file.

namespace gossamer {

int run_theory_bound(int argc, char** argv);
int run_theory_rates(int argc, char** argv);
int run_theory_transient(int argc, char** argv);
int run_theory_speedup(int argc, char** argv);

}  // namespace gossamer
