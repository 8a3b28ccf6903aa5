import { z } from 'zod';
import { systemClock } from '../kit/clock.ts';
import { toPlatformError } from '../kit/errors.ts';
import { createContext } from './context.ts';
import type { AnyCommand } from './define-command.ts';
import type { GlobalFlags } from './globals.ts';
import { EXIT, exitCodeOf, failureEnvelope, renderError, renderResult } from './output.ts';
import { parseArgs, parseGlobals } from './parse-args.ts';
import { createStyle } from './style.ts';
import { createUi } from './ui.ts';

// A command parses a thing or two once: compiling parsers for that costs more than it saves.
z.config({ jitless: true });

/** Parses, runs and prints one command; resolves with the exit code. */
export async function runCommand(command: AnyCommand, argv: readonly string[]): Promise<number> {
  let globals = parseGlobals(argv);
  try {
    const parsed = parseArgs(command, argv);
    if ('help' in parsed) {
      process.stdout.write(`${parsed.help}\n`);
      return EXIT.done;
    }
    globals = parsed.globals;
    const ui = uiFor(globals);
    const context = createContext({
      cwd: process.cwd(),
      env: process.env,
      globals,
      ui,
      clock: systemClock,
    });
    const outcome = await command.run(parsed.args as never, context);
    const text = renderResult(command, outcome, globals.json, ui.out);
    if (text !== null) process.stdout.write(`${text}\n`);
    return outcome.exitCode;
  } catch (error) {
    return reportFailure(error, globals);
  }
}

/** Tells a call that leads to no command. */
export function reportUsage(error: unknown, argv: readonly string[]): number {
  return reportFailure(error, parseGlobals(argv));
}

function reportFailure(error: unknown, globals: GlobalFlags): number {
  if (globals.json) process.stdout.write(`${JSON.stringify(failureEnvelope(error))}\n`);
  else {
    const style = createStyle(process.stderr, process.env);
    process.stderr.write(`${renderError(error, { style, debug: globals.debug })}\n`);
  }
  return exitCodeOf(toPlatformError(error));
}

function uiFor(globals: GlobalFlags) {
  const { stdout, stderr, env } = process;
  return createUi({
    stdout,
    stderr,
    quiet: globals.quiet,
    out: createStyle(stdout, env),
    err: createStyle(stderr, env),
  });
}
