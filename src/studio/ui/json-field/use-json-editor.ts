import type { ComponentChildren } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { parsedJson } from '../parsed-json.ts';
import type { JsonEditor } from './json-editor.ts';

export interface JsonFieldProps {
  id: string;
  label: ComponentChildren;
  text: string;
  onChange: (text: string) => void;
  /** Least height in lines. */
  rows?: number;
  /** Whether the text may be empty. */
  isOptional?: boolean;
  /** Explanation that the caller shows near the field. */
  hint?: string | undefined;
  /** Mistake that the form or the gateway has found, which the caller shows near the field. */
  issue?: string | undefined;
  /** Moves the focus into the field when it changes. Without it, the field does not take the focus. */
  focusKey?: string | undefined;
}

/** Replaces the text area of a field by the editor when the editor is loaded. */
export function useJsonEditor(props: JsonFieldProps) {
  const { text, isOptional = false, hint, issue } = props;
  const label = useRef<HTMLLabelElement>(null);
  const host = useRef<HTMLDivElement>(null);
  const area = useRef<HTMLTextAreaElement>(null);
  const [editor, setEditor] = useState<JsonEditor>();
  const [found, setFound] = useState('');
  // The editor outlives the render that made it, so it calls the functions of the last one.
  const latest = useRef(props);
  latest.current = props;

  const isWrong = text.trim() !== '' && parsedJson(text) === undefined;
  const unplaced = isWrong ? 'This text is not JSON.' : '';
  const problem = editor ? found : unplaced;
  const description = [hint, issue, problem].filter(Boolean).join(' ');
  const attributes = attributesOf(description, Boolean(issue || problem), isOptional);
  const named = () => ({ ...attributes, 'aria-label': label.current?.textContent ?? '' });

  useEffect(() => {
    let made: JsonEditor | undefined;
    const ended = new AbortController();
    replaceWhenReady(area.current!, ended.signal, ({ JsonEditor }, { value, selection, hasFocus }) => {
      host.current!.hidden = false;
      made = new JsonEditor({
        ...{ host: host.current!, text: value, selection, attributes: named(), isOptional },
        onChange: (changed) => latest.current.onChange(changed),
        onProblem: setFound,
      });
      if (hasFocus) made.focus();
      setEditor(made);
    });
    return () => {
      ended.abort();
      made?.destroy();
    };
  }, []);
  useLayoutEffect(() => {
    if (editor && editor.text !== text) editor.setText(text);
  }, [editor, text]);
  useLayoutEffect(() => editor?.setAttributes(named()), [editor, JSON.stringify(attributes)]);
  return {
    refs: { label, host, area },
    ...{ isLoaded: editor !== undefined, attributes, problem },
    focus: (): void => (editor ?? area.current)?.focus(),
  };
}

function attributesOf(description: string, isInvalid: boolean, isOptional: boolean) {
  return {
    'aria-required': isOptional ? 'false' : 'true',
    'aria-invalid': isInvalid ? 'true' : 'false',
    ...(description === '' ? {} : { 'aria-description': description }),
  } as const;
}

interface Module {
  JsonEditor: typeof JsonEditor;
}

interface AreaState {
  value: string;
  selection: { anchor: number; head: number };
  hasFocus: boolean;
}

/** Loads the editor and calls `replace`, unless loading fails. Waits for the end of a composition of characters. */
function replaceWhenReady(
  area: HTMLTextAreaElement,
  signal: AbortSignal,
  replace: (module: Module, state: AreaState) => void,
): void {
  let isComposing = false;
  area.addEventListener('compositionstart', () => (isComposing = true), { signal });
  area.addEventListener('compositionend', () => (isComposing = false), { signal });
  import('./json-editor.ts').then(
    (module) => {
      const change = (): void => {
        if (signal.aborted) return;
        const { value, selectionStart, selectionEnd, selectionDirection } = area;
        const ends = [selectionStart, selectionEnd] as const;
        const [anchor, head] = selectionDirection === 'backward' ? [ends[1], ends[0]] : ends;
        replace(module, {
          ...{ value, selection: { anchor, head } },
          hasFocus: document.activeElement === area,
        });
      };
      if (isComposing) area.addEventListener('compositionend', change, { signal, once: true });
      else change();
    },
    () => undefined,
  );
}
