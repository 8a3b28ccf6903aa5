/** Link to the waterfall of a trace. `label` stands for the id, which is long. */
export function TraceLink({ id, label }: { id: string; label?: string }) {
  return <a href={`/studio/traces/${encodeURIComponent(id)}`}>{label ?? <code>{id}</code>}</a>;
}
