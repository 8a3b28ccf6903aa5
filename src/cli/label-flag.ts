import { UsageError } from './parse-args.ts';

/** Parses `--label <name>=<value>` flags. Throws UsageError for a flag without a name or `=`. */
export function labelsOf(flags: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    flags.map((flag) => {
      const at = flag.indexOf('=');
      if (at < 1) throw new UsageError(`--label ${flag}: must be <name>=<value>.`);
      return [flag.slice(0, at), flag.slice(at + 1)];
    }),
  );
}
