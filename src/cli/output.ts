import type { CommandResult, Envelope } from '../contracts/index.ts';
import { PlatformError, toPlatformError } from '../kit/errors.ts';
import { isRecord } from '../kit/is-record.ts';
import { type AnyCommand, STREAMED, successEnvelope } from './define-command.ts';
import { harmless, harmlessData, harmlessLines, jsonText } from './harmless.ts';
import { completeRecords } from './json-records.ts';
import { shellWord } from './shell-word.ts';
import { pairs, type Style, table } from './style.ts';
import { lineWidth, wrap } from './wrap.ts';

/** What goes to stdout for a result; null for a command that has printed its stream. */
export function renderResult(
  command: AnyCommand,
  outcome: CommandResult,
  json: boolean,
  style: Style,
): string | null {
  if (outcome.meta?.[STREAMED]) return null;
  const failed = outcome.error !== undefined || outcome.exitCode !== 0;
  if (json) {
    const completed = { ...outcome, result: completeRecords(outcome.result, command) };
    return jsonText(failed ? declaredFailure(completed) : successEnvelope(completed));
  }
  if (outcome.result === undefined) return null;
  // What a failure found out is worth printing where the command says how (`svc doctor`).
  if (outcome.error && !command.text) return null;
  const result = harmlessData(outcome.result);
  const text = command.text ? command.text(result as never, style) : renderValue(result, style);
  // A sentence is wrapped; what has lines has its own form.
  return harmless(text.includes('\n') ? text : wrap(text, lineWidth(process.stdout)).join('\n'));
}

/** A command's help; that of a plugin's command has the plugin's own words in it. */
export function renderHelp(help: string, json: boolean): string {
  return json ? jsonText({ ok: true, result: { help } }) : harmlessData(help);
}

/** @spec Errors: Shapes */
export function failureEnvelope(thrown: unknown): Envelope {
  const { code, message, details } = toPlatformError(thrown);
  return { ok: false, error: { code, message, details }, result: null, meta: {} };
}

/** A failure that is a result: declared by a plugin's command with a code of its own, or told by the exit code alone. */
function declaredFailure({ exitCode, error, result, meta }: CommandResult): Envelope {
  const {
    code = 'EXECUTION_ERROR',
    message = `The command ended with exit code ${exitCode}.`,
    details = {},
  } = error ?? {};
  return { ok: false, error: { code, message, details }, result: result ?? null, meta: meta ?? {} };
}

/** The same for people. */
export function renderDeclaredFailure(outcome: CommandResult, style: Style, width: number): string {
  const { message, code = 'EXECUTION_ERROR' } = outcome.error ?? {};
  return harmless(
    [
      indented(`${style.red('error')} `, harmlessData(String(message)), width),
      style.dim(` code ${harmlessLines(code)}`),
    ].join('\n'),
  );
}

export interface ErrorView {
  style: Style;
  debug: boolean;
  /** Of the terminal; infinite where lines stay whole, for programs that read them. */
  width: number;
}

/** What happened, why, and the command that mends it. */
export function renderError(thrown: unknown, { style, debug, width }: ErrorView): string {
  const error = thrown instanceof PlatformError ? thrown : unexpected(thrown);
  const message = harmlessData(error.message);
  const { hint, lastLines, at, requestId } = textsIn(error.details);
  if (error.name === 'CancelledError') return message;
  const lines = [
    indented(`${style.red('error')} `, message, width),
    ...(lastLines.length > 0
      ? [style.dim('  its last lines:'), ...lastLines.map((line) => style.dim(`  | ${line}`))]
      : []),
    ...(at ? [style.dim(`   at ${at}`)] : []),
    ...(requestId
      ? [
          style.dim(`  req ${requestId}`),
          `${style.cyan(' hint')} svc logs --request-id ${shellWord(requestId)}`,
        ]
      : []),
    ...(hint ? [indented(`${style.cyan(' hint')} `, hint, width)] : []),
    ...(error.name === 'UsageError' ? [] : [style.dim(` code ${error.code}`)]),
    ...(debug ? [indented('', harmlessData(stackOf(thrown)), Number.POSITIVE_INFINITY)] : []),
  ];
  return harmless(lines.join('\n'));
}

interface ErrorTexts {
  hint?: string | undefined;
  at?: string | undefined;
  requestId?: string | undefined;
  lastLines: string[];
}

/** What is printed of an error's details; a gateway elsewhere may put anything there. */
function textsIn({ hint, lastLines, at, requestId }: Record<string, unknown>): ErrorTexts {
  const isText = (value: unknown): value is string => typeof value === 'string';
  const line = (value: unknown) => (isText(value) ? harmlessLines(value) : undefined);
  return {
    hint: isText(hint) ? harmlessData(hint) : undefined,
    at: line(at),
    requestId: line(requestId),
    lastLines: Array.isArray(lastLines) ? harmlessLines(lastLines.filter(isText)) : [],
  };
}

const MARGIN = 6;

/**
 * Behind its head; lines that are too long are broken at blanks. A line that does not begin as those of a list do is indented by
 * the width of the head, so that a text of others cannot hold what passes for a `hint` or an `error` of ours.
 */
function indented(head: string, text: string, width: number): string {
  const margin = ' '.repeat(MARGIN);
  const fitting = (line: string, index: number): string => {
    const before = index === 0 || line.startsWith('  ') ? '' : margin;
    return before + (line.length <= width - MARGIN ? line : wrap(line, width - MARGIN).join(`\n${margin}`));
  };
  return head + text.split('\n').map(fitting).join('\n');
}

/** A fault of ours: on this machine its text is the operator's to see. */
function unexpected(thrown: unknown): PlatformError {
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return new PlatformError('INTERNAL_ERROR', message, {
    details: { hint: 'This is a fault of svc itself; --debug shows where.' },
  });
}

function stackOf(thrown: unknown): string {
  const parts: string[] = [];
  for (let at: unknown = thrown; at instanceof Error; at = at.cause) parts.push(at.stack ?? at.message);
  return parts.join('\ncaused by: ');
}

/** A general view of data: lists of records as a table, a record as name and value. */
function renderValue(value: unknown, style: Style): string {
  if (Array.isArray(value) && value.length > 0 && value.every(isRecord)) {
    const headings = [...new Set(value.flatMap((row) => Object.keys(row)))];
    return table(
      headings,
      value.map((row) => headings.map((heading) => scalar(row[heading]))),
      style,
    );
  }
  if (isRecord(value))
    return pairs(
      Object.entries(value).map(([name, item]) => [name, scalar(item)]),
      style,
    );
  return scalar(value);
}

function scalar(value: unknown): string {
  if (value === null || value === undefined) return '-';
  if (typeof value === 'boolean') return value ? 'yes' : 'no';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}
