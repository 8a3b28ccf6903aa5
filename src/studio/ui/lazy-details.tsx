import type { ComponentType } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { Failure } from './states.tsx';

interface LazyDetailsProps<Props extends object> {
  summary: string;
  load: () => Promise<{ default: ComponentType<Props> }>;
  props: Props;
  /** Whether it is open at first, as an address can say. */
  isOpen?: boolean;
}

/** Part of a screen that is loaded when it is opened. */
export function LazyDetails<Props extends object>({
  summary,
  load,
  props,
  isOpen = false,
}: LazyDetailsProps<Props>) {
  const details = useRef<HTMLDetailsElement>(null);
  useEffect(() => {
    if (isOpen) details.current!.open = true;
  }, [isOpen]);
  const [loaded, setLoaded] = useState<{ Part: ComponentType<Props> }>();
  const [error, setError] = useState<Error>();
  const open = (): void => {
    setError(undefined);
    load().then(({ default: Part }) => setLoaded({ Part }), setError);
  };
  return (
    <details
      ref={details}
      onToggle={(event) => {
        if (event.currentTarget.open && !loaded) open();
      }}
    >
      <summary>{summary}</summary>
      {error && <Failure error={error} onRetry={open} />}
      {loaded && <loaded.Part {...props} />}
    </details>
  );
}
