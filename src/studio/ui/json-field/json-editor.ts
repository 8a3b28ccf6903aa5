import { history, historyKeymap, standardKeymap } from '@codemirror/commands';
import { json } from '@codemirror/lang-json';
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language';
import { Compartment, EditorState, StateEffect, StateField } from '@codemirror/state';
import { Decoration, type DecorationSet, EditorView, keymap, lineNumbers } from '@codemirror/view';
import { tags } from '@lezer/highlight';
import { type JsonProblem, jsonProblem } from './json-problem.ts';

export interface JsonEditorOptions {
  /** Element without content. The editor stands in its shadow tree. */
  host: HTMLElement;
  text: string;
  selection: { anchor: number; head: number };
  /** ARIA attributes of the text box. */
  attributes: Readonly<Record<string, string>>;
  /** Whether a text without a value is no mistake. */
  isOptional: boolean;
  onChange: (text: string) => void;
  /** Called with the first mistake, in words, or with an empty text. */
  onProblem: (message: string) => void;
}

/** Pause of typing after which a mistake is shown, so that half of a word is no mistake. */
const TYPING_MS = 400;

/**
 * Text editor for JSON. In a shadow tree, CodeMirror adopts style sheets. In the document, it would add style elements,
 * which the content security policy forbids.
 */
export class JsonEditor {
  readonly #options: JsonEditorOptions;
  readonly #attributes = new Compartment();
  readonly #view: EditorView;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(options: JsonEditorOptions) {
    const { host, text, selection, attributes } = options;
    this.#options = options;
    const root = host.attachShadow({ mode: 'open' });
    const changes = EditorView.updateListener.of((update) => {
      if (update.docChanged) this.#changed();
    });
    const state = EditorState.create({
      ...{ doc: text, selection },
      extensions: [...EXTENSIONS, this.#attributes.of(EditorView.contentAttributes.of(attributes)), changes],
    });
    this.#view = new EditorView({ state, root, parent: root });
    if (text.trim() !== '') this.#check();
  }

  get text(): string {
    return this.#view.state.doc.toString();
  }

  setText(text: string): void {
    this.#view.dispatch({ changes: { from: 0, to: this.#view.state.doc.length, insert: text } });
  }

  setAttributes(attributes: Readonly<Record<string, string>>): void {
    const content = EditorView.contentAttributes.of(attributes);
    this.#view.dispatch({ effects: this.#attributes.reconfigure(content) });
  }

  focus(): void {
    this.#view.focus();
  }

  destroy(): void {
    clearTimeout(this.#timer);
    this.#view.destroy();
  }

  #changed(): void {
    this.#options.onChange(this.text);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#check(), TYPING_MS);
  }

  #check(): void {
    const { text } = this;
    const isBlank = this.#options.isOptional && text.trim() === '';
    const problem = isBlank ? undefined : jsonProblem(text);
    this.#view.dispatch({ effects: showProblem.of(problem) });
    this.#options.onProblem(problem?.message ?? '');
  }
}

const showProblem = StateEffect.define<JsonProblem | undefined>();
const PROBLEM = Decoration.mark({ class: 'problem' });

const problemMark = StateField.define<DecorationSet>({
  create: () => Decoration.none,
  update(marks, { changes, effects, newDoc }) {
    const shown = effects.find((effect) => effect.is(showProblem));
    return shown ? markOf(shown.value, newDoc.toString()) : marks.map(changes);
  },
  provide: (field) => EditorView.decorations.from(field),
});

/** Marks the wrong part. At the end of a line there is none, so the text before it is marked. */
function markOf(problem: JsonProblem | undefined, text: string): DecorationSet {
  if (!problem) return Decoration.none;
  const { offset, length } = problem;
  const isVisible = text.slice(offset, offset + length).trim() !== '';
  const end = isVisible ? offset + length : text.slice(0, offset).trimEnd().length;
  const start = isVisible ? offset : end - 1;
  return start < 0 ? Decoration.none : Decoration.set(PROBLEM.range(start, end));
}

const COLOURS = HighlightStyle.define([
  { tag: tags.propertyName, color: 'var(--accent)' },
  { tag: tags.string, color: 'var(--good)' },
  { tag: [tags.number, tags.bool, tags.null], color: 'var(--waiting)' },
]);

/** Custom properties of the page are inherited into the shadow tree, other styles of the page are not. */
const THEME = EditorView.theme({
  '&': {
    backgroundColor: 'var(--ground)',
    border: '1px solid var(--line)',
    borderRadius: 'var(--radius)',
    fontSize: '0.92em',
  },
  '&:has([aria-invalid="true"])': { borderColor: 'var(--bad)' },
  '&.cm-focused': { outline: '2px solid var(--accent)', outlineOffset: '1px' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5', maxHeight: '36em' },
  '.cm-content': { caretColor: 'var(--text)', minHeight: 'calc(var(--rows) * 1.5em + 8px)' },
  '.cm-gutters': { backgroundColor: 'var(--raised)', borderColor: 'var(--line)', color: 'var(--dim)' },
  '.problem': { textDecoration: 'underline wavy var(--bad)', textDecorationSkipInk: 'none' },
  '&.cm-focused .cm-matchingBracket, &.cm-focused .cm-nonmatchingBracket': {
    backgroundColor: 'transparent',
    outline: '1px solid var(--dim)',
  },
});

/** No key inserts a tab, so that the Tab key leaves the field. */
const EXTENSIONS = [
  lineNumbers(),
  history(),
  json(),
  bracketMatching(),
  syntaxHighlighting(COLOURS),
  EditorView.lineWrapping,
  keymap.of([...standardKeymap, ...historyKeymap]),
  problemMark,
  THEME,
];
