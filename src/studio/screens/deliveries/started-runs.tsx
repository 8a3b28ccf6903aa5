interface StartedRun {
  workflowId: string;
  runId: string;
}

/** Links to the runs that a delivery started. */
export function StartedRuns({ outcome }: { outcome: unknown }) {
  const runs = runsOf(outcome);
  if (runs.length === 0) return null;
  return (
    <p class="started">
      {runs.length === 1 ? 'It started a run' : `It started ${runs.length} runs`}. Next: open{' '}
      {runs.map(({ workflowId, runId }, index) => (
        <>
          {index > 0 && ', '}
          <a key={runId} href={`/studio/runs/${runId}`}>
            the run of {workflowId}
          </a>
        </>
      ))}
    </p>
  );
}

function runsOf(outcome: unknown): readonly StartedRun[] {
  return (outcome as { workflows?: { runs?: StartedRun[] } } | null)?.workflows?.runs ?? [];
}
