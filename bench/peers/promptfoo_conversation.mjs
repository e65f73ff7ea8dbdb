// A provider of promptfoo that holds the conversation: opens a task, then the agent and the simulated user in turn.
// Both are asked by `fetch`.

const TURNS = 7

export default class Conversation {
  constructor({ config }) {
    this.config = config
  }

  id() {
    return 'conversation'
  }

  async callApi(told, { vars }) {
    const { url } = this.config
    const agent = { 'x-network-api-key': 'bench-agent-key' }
    const task = await post(`${url}/external/tasks`, agent, { agent_id: 'bench', user_id: 'bench' })
    const messages = [{ role: 'user', content: vars.first }]
    for (;;) {
      const text = messages.at(-1).content
      const reply = await post(`${url}/external/message`, agent, { task_id: task.id, text, is_external_api: true })
      messages.push({ role: 'assistant', content: reply.text })
      if (messages.length === 2 * TURNS) break
      messages.push({ role: 'user', content: await this.lineOfUser(told, messages) })
    }
    return { output: messages.map(({ role, content }) => `${role}: ${content}`).join('\n') }
  }

  async lineOfUser(told, messages) {
    const seen = messages.map(({ role, content }) => ({ role: role === 'user' ? 'assistant' : 'user', content }))
    const body = { model: 'bench', messages: [{ role: 'system', content: told }, ...seen] }
    const answer = await post(`${this.config.url}/v1/chat/completions`, { authorization: 'Bearer bench-llm-key' }, body)
    return answer.choices[0].message.content
  }
}

async function post(url, headers, body) {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  })
  if (!response.ok) throw new Error(`${url} answered ${response.status}`)
  return response.json()
}
