import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, type EndpointName, type Input, open } from './call.ts';

export interface LiveEvent {
  id: string | undefined;
  event: string;
  data: unknown;
}

export type LiveState = 'off' | 'connecting' | 'live' | 'waiting';

const RETRY_MS = 1500;

/**
 * Follows a stream of server-sent events while `isOn`. After a lost connection, the stream resumes at the last event,
 * so that no event is missed.
 */
export function useLive<Name extends EndpointName>(
  name: Name,
  input: Input<Name>,
  { isOn, onEvent }: { isOn: boolean; onEvent: (event: LiveEvent) => void },
): LiveState {
  const [state, setState] = useState<LiveState>('off');
  const listener = useRef(onEvent);
  listener.current = onEvent;
  // A paused stream also resumes where it stopped.
  const lastEventId = useRef<string | undefined>(undefined);
  const key = JSON.stringify(input);
  useEffect(() => {
    lastEventId.current = undefined;
  }, [name, key]);
  useEffect(() => {
    if (!isOn) return setState('off');
    const controller = new AbortController();
    void follow(controller.signal);
    return () => controller.abort();

    async function follow(signal: AbortSignal): Promise<void> {
      while (!signal.aborted) {
        try {
          setState('connecting');
          const response = await open(name, input, { signal, lastEventId: lastEventId.current });
          setState('live');
          for await (const event of eventsOf(response)) {
            if (event.id !== undefined) lastEventId.current = event.id;
            listener.current(event);
          }
        } catch (error) {
          if (error instanceof ApiError && [400, 401, 403].includes(error.status)) return setState('off');
        }
        if (signal.aborted) return;
        setState('waiting');
        await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
      }
    }
  }, [name, key, isOn]);
  return state;
}

/** Parses a stream of server-sent events. */
async function* eventsOf(response: Response): AsyncGenerator<LiveEvent> {
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split(/\r?\n\r?\n/);
    rest = blocks.pop()!;
    for (const block of blocks) {
      const event = parseEvent(block);
      if (event) yield event;
    }
  }
}

function parseEvent(block: string): LiveEvent | undefined {
  const fields = new Map<string, string>();
  for (const line of block.split(/\r?\n/)) {
    const match = /^(id|event|data): ?(.*)$/.exec(line);
    if (!match) continue;
    const [, name, value] = match as unknown as [string, string, string];
    const before = fields.get(name);
    fields.set(name, name === 'data' && before !== undefined ? `${before}\n${value}` : value);
  }
  const data = fields.get('data');
  if (data === undefined) return undefined;
  return { id: fields.get('id'), event: fields.get('event') ?? 'message', data: JSON.parse(data) };
}
