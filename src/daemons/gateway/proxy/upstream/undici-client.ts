import type { Agent, Dispatcher } from 'undici';
import { seconds } from '../../../../kit/time/duration.ts';
import type { UpstreamClient, UpstreamHandler, UpstreamRequest } from './client.ts';

export interface UndiciClientOptions {
  /** The shortest timeout of all routes, which also limits the time to connect. */
  timeoutMs: number;
}

/** Creates a client for upstreams on other machines. The package undici is loaded on first use. */
export function createUndiciClient({ timeoutMs }: UndiciClientOptions): UpstreamClient {
  let agent: Agent | undefined;
  let loading: Promise<Agent> | undefined;

  async function load(): Promise<Agent> {
    const undici = await import('undici');
    agent = new undici.Agent({
      connections: 256,
      // 0 disables the timeout, because event streams can be silent for any length of time.
      bodyTimeout: 0,
      keepAliveTimeout: seconds(10),
      connect: { timeout: Math.min(timeoutMs, seconds(10)) },
    });
    return agent;
  }
  return {
    send(request, handler) {
      const exchange = createExchange(request, handler);
      if (agent) exchange.start(agent);
      else {
        loading ??= load();
        loading.then(exchange.start, exchange.fail);
      }
      return exchange;
    },
    async close() {
      await (await loading)?.destroy();
    },
  };
}

/** Creates the state of one request. The request can be aborted even before undici starts the request. */
function createExchange(request: UpstreamRequest, handler: UpstreamHandler) {
  let controller: Dispatcher.DispatchController | undefined;
  let done = false;

  function fail(error: Error): void {
    if (done) return;
    done = true;
    handler.onError(error);
  }
  function start(agent: Agent): void {
    if (done) return;
    agent.dispatch(
      {
        origin: request.origin,
        path: request.path,
        method: request.method as Dispatcher.HttpMethod,
        headers: request.headers,
        body: request.body,
        headersTimeout: request.timeoutMs,
      },
      {
        onRequestStart(started) {
          controller = started;
          if (done) started.abort(new Error('The client left.'));
        },
        onResponseStart(started, status) {
          // Interim responses (1xx) are skipped.
          if (done || status < 200) return;
          handler.onHead(status, texts(started.rawHeaders));
        },
        onResponseData(started, chunk) {
          if (!done && !handler.onData(chunk)) started.pause();
        },
        onResponseEnd() {
          if (done) return;
          done = true;
          handler.onEnd();
        },
        onResponseError: (_started, error) => fail(error),
      },
    );
  }
  return {
    start,
    fail,
    resume: () => controller?.resume(),
    abort() {
      done = true;
      controller?.abort(new Error('The client left.'));
    },
  };
}

/** Converts headers to a flat list of lower-case names and values. */
function texts(raw: Dispatcher.DispatchController['rawHeaders']): string[] {
  if (!Array.isArray(raw)) return [];
  return raw.map((item, index) => {
    const text = typeof item === 'string' ? item : item.toString('latin1');
    return index % 2 === 0 ? text.toLowerCase() : text;
  });
}
