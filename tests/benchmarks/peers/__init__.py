"""Other systems on the benchmarks' work: Java programs, and how they are run."""
