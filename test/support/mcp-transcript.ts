import type { Client } from '@modelcontextprotocol/client';
import { expect } from 'vitest';
import { isRecord } from '../../src/kit/data/is-record.ts';
import type { AnyJson } from './any-json.ts';
import { request } from './mcp-tasks.ts';

interface Step {
  method: string;
  params: AnyJson;
  result: AnyJson;
  /** The question that the platform asks meanwhile, and the answer of the person. */
  question?: AnyJson;
  answer?: AnyJson;
}

/** The MCP messages of a page, in order: `>` request, `?` question, `!` its answer, `<` part of the result. */
export class McpTranscript {
  readonly #steps: Step[] = [];
  readonly #variables: Record<string, string> = {};
  #open: { answer: AnyJson; asked: AnyJson[] } | undefined;

  constructor(page: string) {
    const blocks = [...page.matchAll(/```mcp\n([\s\S]*?)```/g)].map(([, block]) => block!.trim());
    for (const line of blocks.flatMap((block) => block.split('\n'))) this.#add(line);
  }

  get left(): number {
    return this.#steps.length;
  }

  /** Answers questions of the platform as the page says. Call it before the client connects. */
  prepare(client: Client): void {
    client.setRequestHandler('elicitation/create', async ({ params }) => {
      this.#open?.asked.push(params);
      return this.#open?.answer ?? { action: 'cancel' };
    });
  }

  /**
   * Sends the next request, whose result must be as the page says. Reads are repeated until it is; all other requests are
   * sent once. Names of the page, such as $TASK, get their values.
   */
  async next(client: Client, method: string): Promise<void> {
    const { result, question, answer, ...step } = this.#steps.shift()!;
    expect(step.method).toBe(method);
    const asked: AnyJson[] = [];
    this.#open = { answer, asked };
    const params = this.#filled(step.params);
    const send = async () => {
      const found = await request(client, method, params);
      const difference = this.#fits(found, result);
      return difference === '' ? '' : `${difference}\n${JSON.stringify(found)}`;
    };
    if (await isRead(client, method, params))
      await expect.poll(send, { timeout: 30_000, interval: 500 }).toBe('');
    else expect(await send()).toBe('');
    if (question !== undefined) expect(this.#fits(asked[0], question)).toBe('');
  }

  #add(line: string): void {
    const [, kind, method, json] = /^([><?!]) (?:([\w/]+) )?(.*)$/.exec(line)!;
    const value = JSON.parse(json!) as AnyJson;
    if (kind === '>') this.#steps.push({ method: method!, params: value, result: {} });
    const field = { '<': 'result', '?': 'question', '!': 'answer' }[kind!] as keyof Step | undefined;
    if (field) this.#steps.at(-1)![field] = value;
  }

  #filled(value: AnyJson): AnyJson {
    const text = JSON.stringify(value).replaceAll(/\$([A-Z]+)/g, (_, name: string) => this.#variables[name]!);
    return JSON.parse(text);
  }

  /** Returns '' if the value has all parts of the page, else the first difference. Unknown names are set. */
  #fits(found: AnyJson, expected: AnyJson, path = 'result'): string {
    const fault = `${path}: ${JSON.stringify(found)?.slice(0, 900)} instead of ${JSON.stringify(expected)}`;
    if (typeof expected === 'string' && expected.startsWith('$')) {
      const name = expected.slice(1);
      this.#variables[name] ??= String(found);
      return this.#variables[name] === found ? '' : fault;
    }
    if (typeof expected === 'string' && /^\/.*\/$/.test(expected))
      return new RegExp(expected.slice(1, -1)).test(String(found)) ? '' : fault;
    if (Array.isArray(expected) || isRecord(expected)) {
      if (typeof found !== 'object' || found === null) return fault;
      for (const [name, part] of Object.entries(expected)) {
        const difference = this.#fits(found[name], part, `${path}.${name}`);
        if (difference !== '') return difference;
      }
      return '';
    }
    return found === expected ? '' : fault;
  }
}

/** Returns whether a request has no side effects, so that it can be repeated. */
async function isRead(client: Client, method: string, params: AnyJson): Promise<boolean> {
  if (method !== 'tools/call') return method === 'tasks/get';
  const { tools } = await client.listTools();
  return tools.find(({ name }) => name === params.name)?.annotations?.readOnlyHint === true;
}
