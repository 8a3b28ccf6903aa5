import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import process from 'node:process';
import type { CommandResult, PluginContextV3 } from '../../../contracts/index.ts';
import type { ListedMcpTool, McpServer } from '../../../contracts/mcp-servers.ts';
import { systemClock } from '../../../kit/time/clock.ts';
import { toolDigest } from '../../mcp/tool-digest.ts';
import { RunnerFailure } from '../failure.ts';
import { EgressProxy } from './egress-proxy.ts';
import { connectServer } from './http-session.ts';
import type { McpCall } from './mcp-call.ts';
import { ServerFailure, ServerRefusal } from './rpc.ts';
import type { Session } from './session.ts';
import { startServer } from './stdio-session.ts';
import { findTool, listTools } from './tool-list.ts';
import { failed, toolResult } from './tool-result.ts';

/** Delay after a failed start, doubled with each further failure. */
const FIRST_DELAY_MS = 500;
const MAX_DELAY_MS = 30_000;

/** The server has failed and is not started yet. */
class ServerPaused extends ServerFailure {
  readonly leftMs: number;

  constructor(failures: number, leftMs: number) {
    super(`it has failed ${failures} times in a row and may start in ${leftMs} ms`);
    this.leftMs = leftMs;
  }
}

interface Manifest {
  id: string;
  permissions: { network: readonly string[] };
  mcpServer: McpServer;
}

/**
 * The MCP server of a plugin. It runs in the sandbox of this process, is started by the first call, and serves the
 * tenant of this process only. @spec docs/mcp-servers.md
 */
export class McpTools {
  readonly #root: string;
  #manifest: Manifest | undefined;
  readonly #proxy = new EgressProxy(() => this.#current());
  #opened: { session: Session; values: string } | undefined;
  #opening: Promise<unknown> = Promise.resolve();
  /** The calls in flight, the newest last. */
  readonly #calls = new Set<McpCall>();
  #failures = 0;
  #retryAt = 0;

  constructor(root: string) {
    this.#root = root;
  }

  /** Lists the tools of the server, each within the limits of an approved tool. */
  async list(call: McpCall): Promise<ListedMcpTool[]> {
    let session: Session | undefined;
    this.#calls.add(call);
    try {
      session = await this.#session(call);
      return await listTools(session.rpc, call.context.signal);
    } catch (error) {
      if (!(error instanceof ServerFailure) && !(error instanceof ServerRefusal)) throw error;
      session?.close();
      throw new RunnerFailure('EXECUTION_ERROR', `The MCP server cannot be used: ${error.message}.`);
    } finally {
      // The listed tools are about to be written to the manifest.
      this.#manifest = undefined;
      this.#end(call);
    }
  }

  /** Calls a tool, if the server still describes it as the administrator approved it. */
  async run(name: string, input: unknown, call: McpCall): Promise<CommandResult> {
    const tool = this.#read().mcpServer.tools.find((one) => one.name === name);
    if (!tool) return failed('MCP_TOOL_CHANGED', `The tool "${name}" is not approved.${this.#remedy()}`);
    const { signal } = call.context;
    let session: Session | undefined;
    this.#calls.add(call);
    try {
      const found = await this.#found(name, call, (opened) => {
        session = opened;
      });
      if (!found || toolDigest(found) !== tool.digest) return this.#changed(name, found);
      const result = await session!.rpc.request('tools/call', { name, arguments: input ?? {} }, signal);
      this.#failures = 0;
      return await toolResult(tool, result);
    } catch (error) {
      if (signal.aborted) session?.probe();
      if (error instanceof ServerRefusal)
        return failed('MCP_TOOL_FAILED', `The MCP server refused the call of "${name}": ${error.message}`, {
          rpcCode: error.code,
          untrusted: true,
        });
      if (!(error instanceof ServerFailure)) throw error;
      // The server may still run without answering. The next call starts it again.
      session?.close();
      return this.#serverFailed(error);
    } finally {
      this.#end(call);
    }
  }

  #end(call: McpCall): void {
    this.#calls.delete(call);
    this.#proxy.closeConnections(call);
  }

  /** The call on whose behalf the server works now. A server does not say for which of several calls it works. */
  #current(): McpCall | undefined {
    return [...this.#calls].at(-1);
  }

  /** Finds a tool. Starts the server once more if it has ended since the last call, or has dropped the session. */
  async #found(name: string, call: McpCall, take: (session: Session) => void) {
    const before = this.#opened?.session;
    const session = await this.#session(call);
    take(session);
    try {
      return await findTool(session.rpc, name, call.context.signal);
    } catch (error) {
      if (!(error instanceof ServerFailure) || session !== before || session.isOpen()) throw error;
      const next = await this.#session(call);
      take(next);
      return findTool(next.rpc, name, call.context.signal);
    }
  }

  #changed(name: string, found: ListedMcpTool | undefined): CommandResult {
    const what = found ? 'describes the tool in another way than was approved' : 'no longer has the tool';
    return failed('MCP_TOOL_CHANGED', `The MCP server ${what}: "${name}".${this.#remedy()}`, { tool: name });
  }

  #remedy(): string {
    return ` It is refused until an administrator accepts the change: svc plugins accept-mcp ${this.#read().id}`;
  }

  #serverFailed(failure: ServerFailure): CommandResult {
    const { message } = failure;
    const retryAfterMs = failure instanceof ServerPaused ? failure.leftMs : this.#delay();
    return failed('MCP_SERVER_FAILED', `The MCP server failed: ${message}. A later call starts it again.`, {
      errorClass: 'server',
      retryAfterMs,
    });
  }

  #delay(): number {
    const delayMs = Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** this.#failures);
    this.#failures = Math.min(this.#failures + 1, 16);
    this.#retryAt = systemClock.monotonic() + delayMs;
    return delayMs;
  }

  /** Returns the running server, started with the present values of its secrets. */
  async #session(call: McpCall): Promise<Session> {
    const values = await this.#values(call.context);
    const turn = this.#opening.catch(() => {}).then(() => this.#open(call, values));
    this.#opening = turn;
    return turn;
  }

  async #open(call: McpCall, values: Record<string, string>): Promise<Session> {
    const key = JSON.stringify(values);
    if (this.#opened?.session.isOpen() && this.#opened.values === key) return this.#opened.session;
    this.#opened?.session.close();
    this.#opened = undefined;
    const leftMs = this.#retryAt - systemClock.monotonic();
    if (leftMs > 0) throw new ServerPaused(this.#failures, leftMs);
    const session = await this.#start(call, values);
    this.#opened = { session, values: key };
    return session;
  }

  async #start(call: McpCall, values: Record<string, string>): Promise<Session> {
    const { mcpServer: server } = this.#read();
    const { signal } = call.context;
    if (server.url !== undefined)
      return connectServer(
        { server, headers: headersOf(values), fetch: () => (this.#current() ?? call).context.fetch },
        signal,
      );
    const { PATH = '', LANG, TZ } = process.env;
    const basics = { PATH, HOME: '/tmp', TMPDIR: '/tmp', ...(LANG ? { LANG } : {}), ...(TZ ? { TZ } : {}) };
    const env = { ...server.env, ...values, ...basics, ...(await this.#proxyEnv()) };
    return startServer({ root: this.#root, server, env }, signal);
  }

  /** Environment with which the server reaches the hosts of the manifest. Its sandbox has no network of its own. */
  async #proxyEnv(): Promise<Record<string, string>> {
    const { network } = this.#read().permissions;
    if (network.length === 0 || network.includes('*')) return {};
    return this.#proxy.env();
  }

  async #values({ secrets }: PluginContextV3): Promise<Record<string, string>> {
    const names = Object.entries(this.#read().mcpServer.secrets);
    const values = await Promise.all(names.map(async ([name, secret]) => [name, await secrets.get(secret)]));
    return Object.fromEntries(values) as Record<string, string>;
  }

  #read(): Manifest {
    this.#manifest ??= readManifest(this.#root);
    return this.#manifest;
  }
}

function readManifest(root: string): Manifest {
  const manifest = JSON.parse(readFileSync(join(root, 'svc.plugin.json'), 'utf8')) as Partial<Manifest>;
  const { id = '', permissions, mcpServer } = manifest;
  if (!mcpServer)
    throw new RunnerFailure('INVALID_HANDLER', 'The manifest svc.plugin.json has no key "mcpServer".');
  const { args = [], env = {}, secrets = {} } = mcpServer;
  const network = permissions?.network ?? [];
  return { id, permissions: { network }, mcpServer: { ...mcpServer, args, env, secrets } };
}

/** A secret for the Authorization header is a bearer token, unless it names another scheme. */
function headersOf(values: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(values).map(([name, value]) => [
      name,
      name.toLowerCase() === 'authorization' && !value.includes(' ') ? `Bearer ${value}` : value,
    ]),
  );
}
